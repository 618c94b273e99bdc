"""The Trainer's step on a cluster: what it gives to its job, and what it requires of it."""

import json
import os
import subprocess
import sys
import threading

import pytest
from google.cloud.aiplatform_v1.types import JobState

from platforms.google_cloud import api as vertex_api
from platforms.training_jobs import kubernetes
from platforms.training_jobs.job import CustomJobSettings, is_done, last_checkpoint
from tests.checkout import CHECKOUT
from tests.platforms.training_jobs.manifests import make_settings
from tests.platforms.training_jobs.scripted_api import ScriptedApi
from tests.platforms.training_jobs.trainer_step import Step
from tests.platforms.vertex.vertex_server import serving
from tests.trainer_module import conftest
from trainer_module import task
from trainer_module.cluster.resources import allocate

pytestmark = pytest.mark.slow

once, prepared = conftest.once, conftest.prepared

CUSTOM_JOB = CustomJobSettings(
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


def test_a_job_that_succeeds_without_a_model_is_an_error(prepared, tmp_path, monkeypatch):
    ScriptedApi(monkeypatch, tmp_path)
    given = []
    monkeypatch.setattr(kubernetes, "run", lambda *arguments: given.append(arguments))
    settings = make_settings(kind="tfjob", service_account="trainer")
    step = Step(settings, prepared, tmp_path)
    with pytest.raises(RuntimeError, match=f"no model in {step.model}"):
        step.run("multi_worker_mirrored", 1, workers=2)
    [(client, manifest, job, got)] = given
    assert (client.kind.name, client.namespace, got) == ("tfjob", "ml", settings)
    pod = manifest["spec"]["tfReplicaSpecs"]["Chief"]["template"]["spec"]
    assert pod["serviceAccountName"] == "trainer"
    assert pod["containers"][0]["command"][-1] == str(step.job_file)
    assert task.read_job(str(step.job_file)) == job
    assert not is_done(job) and last_checkpoint(job) == ""


class Replicas:
    """Runs the containers of a CustomJob with the TF_CONFIG that Vertex AI gives them.

    Attributes:
      codes: name of a replica -> its exit code, after the end of the job.
      output: the output of all replicas.
    """

    def __init__(self, server):
        self.codes, self.output = {}, ""
        self._server, self._processes = server, {}
        server.on_create = self._start

    def close(self):
        for process in self._processes.values():
            process.kill()

    def _start(self, job):
        job.state = JobState.JOB_STATE_RUNNING
        pools = list(zip(("chief", "worker", "ps"), job.job_spec.worker_pool_specs, strict=False))
        cluster = allocate({kind: pool.replica_count for kind, pool in pools})[0].task.spec
        for kind, pool in pools:
            for index in range(pool.replica_count):
                own = {"type": kind, "index": index}
                config = {"cluster": cluster, "task": own, "environment": "cloud"}
                self._processes[f"{kind}-{index}"] = subprocess.Popen(
                    [sys.executable, *pool.container_spec.command[1:]],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    env={
                        **os.environ,
                        "PYTHONPATH": str(CHECKOUT),
                        "CUDA_VISIBLE_DEVICES": "",
                        "no_grpc_proxy": "127.0.0.1",
                        "TF_CONFIG": json.dumps(config),
                    },
                )
        threading.Thread(target=self._wait, args=[job], daemon=True).start()

    def _wait(self, job):
        for name, process in self._processes.items():
            self.output += process.communicate()[0]
            self.codes[name] = process.returncode
        failed = any(self.codes.values())
        self._server.end_job(job, JobState[f"JOB_STATE_{'FAILED' if failed else 'SUCCEEDED'}"])


@pytest.mark.exhaustive
def test_every_replica_of_a_custom_job_trains_and_ends_well(prepared, tmp_path, monkeypatch):
    with serving() as server:
        monkeypatch.setattr(vertex_api, "connect", server.connect)
        replicas = Replicas(server)
        step = Step(CUSTOM_JOB, prepared, tmp_path)
        try:
            step.run("multi_worker_mirrored", 2, workers=2)
        finally:
            replicas.close()
        [request] = server.find_requests("CreateCustomJob")
    # No replica requires the model that only the chief writes, and none crashes when it exits.
    assert replicas.codes == {"chief-0": 0, "worker-0": 0}, replicas.output
    assert (step.model / "saved_model.pb").is_file()
    assert task.read_job(str(step.job_file)).training.epochs == 2
    summary = json.loads((step.job_file.parent / "training.json").read_text())
    assert (summary["processes"], summary["replicas"], summary["epochs"]) == (2, 2, 2)
    assert request.parent == "projects/my-project/locations/europe-west4"
    assert request.custom_job.job_spec.scheduling.timeout.total_seconds() == 400
