"""VertexExecutor: the CustomJob that it would start. Nothing is sent from here."""

import json

import google.auth
import pytest
from google.auth.credentials import AnonymousCredentials
from tfx.extensions.google_cloud_ai_platform import constants, runner
from tfx.extensions.google_cloud_ai_platform.trainer.executor import TRAINING_ARGS_KEY
from tfx.utils import json_utils

from components.trainer.vertex_executor import VertexExecutor
from pipeline.targets import worker_pool_specs
from tests.kubeflow.settings import IMAGE, settings

pytestmark = pytest.mark.slow


def test_every_pool_trains_with_the_parameters_of_the_run(monkeypatch):
    config = settings("vertex", more="training={strategy: multi_worker_mirrored, workers: 3}")
    launched = []
    # The client is made without asking anybody, but not without credentials.
    nobody = AnonymousCredentials()
    monkeypatch.setattr(google.auth, "default", lambda **arguments: (nobody, "my-project"))
    monkeypatch.setattr(runner, "_launch_cloud_training", lambda **job: launched.append(job))
    custom_config = {
        "training": {"epochs": 1, "strategy": "multi_worker_mirrored"},
        constants.ENABLE_VERTEX_KEY: True,
        constants.VERTEX_REGION_KEY: "europe-west4",
        TRAINING_ARGS_KEY: {
            "project": "my-project",
            "display_name": "training",
            "job_spec": {"worker_pool_specs": worker_pool_specs(config)},
        },
    }
    VertexExecutor().Do(
        {},
        {},
        {
            "custom_config": json_utils.dumps(custom_config),
            "epochs": 7,
            "strategy": "multi_worker_mirrored",
        },
    )
    [job] = launched
    assert (job["project"], job["vertex_region"]) == ("my-project", "europe-west4")
    pools = job["training_job"]["job_spec"]["worker_pool_specs"]
    assert [pool["replica_count"] for pool in pools] == [1, 2]
    for pool in pools:
        container = pool["container_spec"]
        assert container["image_uri"] == IMAGE
        command = container["command"]
        properties = json.loads(command[command.index("--exec-properties") + 1])
        assert json.loads(properties["custom_config"])["training"]["epochs"] == 7
