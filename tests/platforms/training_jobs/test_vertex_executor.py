"""The Trainer on Vertex AI, with real artifacts, and with processes instead of replicas."""

import json

import pytest

from platforms.google_cloud import api as vertex_api
from platforms.training_jobs.settings import CUSTOM_JOB_KEY, CustomJobSettings
from tests.platforms.training_jobs.trainer_step import Step
from tests.platforms.training_jobs.vertex_replicas import Replicas
from tests.platforms.vertex.vertex_server import serving
from tests.trainer_module import conftest
from tests.waiting import wait
from trainer_module import task

pytestmark = pytest.mark.slow

once, prepared = conftest.once, conftest.prepared


SETTINGS = CustomJobSettings(
    project="my-project",
    region="europe-west4",
    display_name="amazon-reviews-training",
    image="registry/reviews:1",
    machine_type="n1-standard-8",
    service_account="me@x",
    network="net",
    timeout_seconds=400,
    poll_seconds=0.2,
)


@pytest.fixture
def replicas(monkeypatch):
    with serving() as server:

        def connect(service, region):
            assert region == "europe-west4"
            return server.connect(service, region)

        monkeypatch.setattr(vertex_api, "connect", connect)
        replicas = Replicas(server)
        yield replicas
        replicas.close()


@pytest.fixture
def step(prepared, tmp_path):
    from platforms.training_jobs.executor import CustomJobExecutor

    platform = {CUSTOM_JOB_KEY: SETTINGS.model_dump()}
    return Step(CustomJobExecutor, platform, prepared, tmp_path)


def test_every_replica_trains_with_the_parameters_of_the_run_and_ends_well(step, replicas):
    step.run("multi_worker_mirrored", 2, workers=2)
    assert (step.model / "saved_model.pb").is_file()
    assert task.read_job(str(step.job_file)).training.epochs == 2
    summary = json.loads((step.job_file.parent / "training.json").read_text())
    assert (summary["processes"], summary["replicas"], summary["epochs"]) == (2, 2, 2)
    wait(lambda: len(replicas.codes) == 2)
    # No replica requires the model that only the chief writes, and none crashes when it exits.
    assert replicas.codes == {"chief-0": 0, "worker-0": 0}, replicas.output
    [request] = replicas.server.find_requests("CreateCustomJob")
    assert request.parent == "projects/my-project/locations/europe-west4"
    spec = request.custom_job.job_spec
    assert (spec.service_account, spec.network) == ("me@x", "net")
    assert spec.scheduling.timeout.total_seconds() == 400
