"""The Trainer's step on a cluster: what it gives to its job, and what it requires of it."""

import json
import subprocess
import sys
import threading

import pytest
from google.cloud.aiplatform_v1.types import JobState
from kubernetes.client import ApiClient

from platforms.training_jobs import kubernetes
from platforms.training_jobs.job import is_done, last_checkpoint
from platforms.vertex import api as vertex_api
from tests.platforms.training_jobs.manifests import make_custom_settings, make_settings
from tests.platforms.training_jobs.trainer_step import Step
from tests.platforms.vertex.vertex_server import serving
from tests.trainer_module import conftest
from trainer_module import task
from trainer_module.cluster.resources import allocate

pytestmark = pytest.mark.slow

once, prepared = conftest.once, conftest.prepared


def test_a_job_that_succeeds_without_a_model_is_an_error(prepared, tmp_path, monkeypatch):
    given = []
    monkeypatch.setattr(kubernetes, "connect", ApiClient)
    monkeypatch.setattr(kubernetes, "run", lambda *arguments: given.append(arguments))
    settings = make_settings(kind="tfjob", service_account="trainer")
    step = Step(settings, prepared, tmp_path)
    # The chief was killed during the export.
    (step.model / "variables").mkdir(parents=True)
    with pytest.raises(RuntimeError, match=f"no model in {step.model}"):
        step.run("multi_worker_mirrored", 1, workers=2)
    [(client, manifest, job, got)] = given
    assert (client.kind.name, client.namespace, got) == ("tfjob", "ml", settings)
    pod = manifest["spec"]["tfReplicaSpecs"]["Chief"]["template"]["spec"]
    assert pod["serviceAccountName"] == "trainer"
    assert pod["containers"][0]["command"][-1] == str(step.job_file)
    assert task.read_job(str(step.job_file)) == job
    assert not is_done(job) and last_checkpoint(job) == ""


@pytest.mark.exhaustive
def test_every_replica_of_a_custom_job_trains_and_ends_well(prepared, tmp_path, monkeypatch):
    codes = []
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    settings = make_custom_settings(timeout_seconds=400, poll_seconds=0.2)
    step = Step(settings, prepared, tmp_path)

    def run_replicas(job):
        pools, places = job.job_spec.worker_pool_specs, allocate({"chief": 1, "worker": 1})
        assert [pool.replica_count for pool in pools] == [1, 1]
        processes = [
            subprocess.Popen([sys.executable, *pool.container_spec.command[1:]], env=place.environ)
            for pool, place in zip(pools, places, strict=True)
        ]
        codes.extend(process.wait(400) for process in processes)
        server.end_job(job, JobState.JOB_STATE_SUCCEEDED)

    with serving() as server:
        monkeypatch.setattr(vertex_api, "connect", server.connect)
        server.on_create = lambda job: threading.Thread(target=run_replicas, args=[job]).start()
        step.run("multi_worker_mirrored", 2, workers=2)
        [request] = server.find_requests("CreateCustomJob")
    # No replica requires the model that only the chief writes, and none crashes when it exits.
    assert codes == [0, 0]
    assert (step.model / "saved_model.pb").is_file()
    summary = json.loads((step.job_file.parent / "training.json").read_text())
    assert (summary["processes"], summary["replicas"], summary["epochs"]) == (2, 2, 2)
    assert request.parent == "projects/my-project/locations/europe-west4"
    assert request.custom_job.job_spec.scheduling.timeout.total_seconds() == 400
