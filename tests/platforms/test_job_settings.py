"""Every setting of a training on a cluster reaches its pods."""

import pytest

from pipeline.config import load_config
from platforms.jobs.tfjob.manifest import make_manifest
from platforms.kubeflow.platform import job_settings
from platforms.vertex.platform import custom_job_settings, endpoint_settings
from tests.platforms.jobs.manifests import (
    JOB_FILE,
    MULTI_WORKER,
    PARAMETER_SERVER,
    make_job,
)

pytestmark = pytest.mark.slow

KUBEFLOW = """
name: my_reviews
cluster:
  image: registry/reviews:1
  resources: {Trainer: {cpu: 3.5, memory: 16G, gpus: 2, gpu_type: amd.com/gpu}}
kubeflow:
  namespace: ml
  service_account: trainer
  training_job: jobset
  training_runtime: reviews
  queue: team-a
  termination_grace_seconds: 15
  node_selector: {pool: gpus}
  tolerations: [{key: gpu, operator: Exists}, {key: spot, value: 'yes', effect: NoSchedule}]
  volume: {claim: reviews, mount: /data}
  training_timeout_hours: 1.5
  refused_timeout_minutes: 3
"""
VERTEX = """
name: my_reviews
cluster:
  image: registry/reviews:1
  resources: {Trainer: {gpus: 2, gpu_type: NVIDIA_L4}}
vertex:
  project: my-project
  region: europe-west4
  service_account: me@x
  network: projects/1/global/networks/net
  machine_type: n1-highmem-4
  training_timeout_hours: 1.5
  endpoint: reviews
  serving_image: registry/serving:1
"""


def load(folder, text):
    file = folder / "config.yaml"
    file.write_text(text)
    return load_config(str(file), environ={})


def test_a_training_on_kubeflow_gets_every_setting(tmp_path):
    job = job_settings(load(tmp_path, KUBEFLOW)).model_dump()
    assert job.pop("poll_seconds") > 0
    assert job == {
        "kind": "jobset",
        "runtime": "reviews",
        "queue": "team-a",
        "image": "registry/reviews:1",
        "namespace": "ml",
        "service_account": "trainer",
        "cpu": 3.5,
        "memory": "16G",
        "gpus": 2,
        "gpu_type": "amd.com/gpu",
        "node_selector": {"pool": "gpus"},
        "tolerations": [
            {"key": "gpu", "operator": "Exists"},
            {"key": "spot", "operator": "Equal", "value": "yes", "effect": "NoSchedule"},
        ],
        "volume_claim": "reviews",
        "volume_mount": "/data",
        "grace_seconds": 15,
        "timeout_seconds": 1.5 * 3600,
        "refused_seconds": 3 * 60,
    }


@pytest.mark.parametrize("training", [PARAMETER_SERVER, MULTI_WORKER])
def test_every_training_pod_runs_as_the_service_account_of_the_settings(tmp_path, training):
    settings = job_settings(load(tmp_path, KUBEFLOW))
    specs = make_manifest(make_job(**training), JOB_FILE, settings)["spec"]["tfReplicaSpecs"]
    accounts = [each["template"]["spec"]["serviceAccountName"] for each in specs.values()]
    assert accounts == ["trainer"] * len(specs)


def test_a_custom_job_gets_every_setting(tmp_path):
    job = custom_job_settings(load(tmp_path, VERTEX)).model_dump()
    assert job.pop("poll_seconds") > 0
    assert job == {
        "project": "my-project",
        "region": "europe-west4",
        "display_name": "my-reviews-training",
        "image": "registry/reviews:1",
        "machine_type": "n1-highmem-4",
        "gpus": 2,
        "gpu_type": "NVIDIA_L4",
        "service_account": "me@x",
        "network": "projects/1/global/networks/net",
        "timeout_seconds": 1.5 * 3600,
    }


@pytest.mark.parametrize(("more", "endpoint"), [("", "reviews"), ("  endpoint:\n", "my-reviews")])
def test_an_endpoint_gets_every_setting(tmp_path, more, endpoint):
    text = VERTEX.replace("  endpoint: reviews\n", more) if more else VERTEX
    settings = endpoint_settings(load(tmp_path, text)).model_dump()
    assert settings.pop("poll_seconds") > 0
    assert settings == {
        "project": "my-project",
        "region": "europe-west4",
        "endpoint": endpoint,
        "model_name": "my-reviews",
        "image": "registry/serving:1",
        "machine_type": "n1-highmem-4",
    }
