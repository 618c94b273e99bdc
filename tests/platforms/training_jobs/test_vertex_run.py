"""A CustomJob followed to its end, found again by a retried step, and cancelled with its step."""

import contextlib
import os
import signal

import grpc
import pytest
from google.cloud.aiplatform_v1.services.job_service import JobServiceClient
from google.cloud.aiplatform_v1.types import JobState

from core.errors import InputError
from platforms.training_jobs import custom_job
from platforms.training_jobs.custom_job import LABEL, make_custom_job
from platforms.training_jobs.job import JobFailed
from platforms.vertex import api as vertex_api
from platforms.vertex.api import ApiError
from tests.platforms.training_jobs.manifests import make_custom_settings, make_job
from tests.platforms.vertex.vertex_server import as_json, serving
from tests.waiting import in_background, wait

pytestmark = pytest.mark.slow

UNAVAILABLE = grpc.StatusCode.UNAVAILABLE
JOB = make_job(strategy="multi_worker_mirrored", workers=2)


class Vertex:
    """A server, and the step that trains on it."""

    def __init__(self, server):
        self.server = server
        self.done = True

    def run(self, timeout_seconds=300.0):
        settings = make_custom_settings(timeout_seconds=timeout_seconds)
        custom_job.train(JOB, "gs://b/job.json", settings)

    def end_with(self, state, message=""):
        self.server.on_create = lambda job: self.server.end_job(job, state, message)

    @property
    def jobs(self):
        return list(self.server.jobs.values())


@pytest.fixture
def vertex(log, monkeypatch):
    monkeypatch.setattr(vertex_api, "SILENCE_SECONDS", 2.0)
    with serving() as server:
        vertex = Vertex(server)
        monkeypatch.setattr(vertex_api, "connect", server.connect)
        monkeypatch.setattr(custom_job, "is_done", lambda job: vertex.done)
        yield vertex


@pytest.mark.parametrize(
    ("strategy", "replicas", "gpus", "restarts"),
    [
        ("multi_worker_mirrored", [1, 2], [2, 2], True),
        ("parameter_server", [1, 3, 1], [0, 2, 0], False),
    ],
)
def test_every_replica_runs_the_training_and_nothing_of_tfx(strategy, replicas, gpus, restarts):
    more = {"gpus": 2, "gpu_type": "NVIDIA_L4", "service_account": "me@x", "network": "net"}
    settings = make_custom_settings(**more, timeout_seconds=3600.5)
    training = make_job(strategy=strategy, workers=3)
    job = as_json(make_custom_job(training, "gs://b/job.json", settings))
    assert job["displayName"] == "amazon-reviews-training"
    spec = job["jobSpec"]
    pools = spec["workerPoolSpecs"]
    assert [int(pool["replicaCount"]) for pool in pools] == replicas
    for pool, count in zip(pools, gpus, strict=True):
        accelerator = {"acceleratorType": "NVIDIA_L4", "acceleratorCount": count} if count else {}
        assert pool["machineSpec"] == {"machineType": "n1-standard-8", **accelerator}
        assert pool["containerSpec"] == {
            "imageUri": "registry/reviews:1",
            "command": ["python", "-m", "trainer_module.task", "gs://b/job.json"],
        }
    assert spec["scheduling"]["timeout"] == "3601s"
    assert spec["scheduling"].get("restartJobOnWorkerRestart", False) is restarts
    assert (spec["serviceAccount"], spec["network"]) == ("me@x", "net")


def test_a_gpu_that_vertex_does_not_have():
    with pytest.raises(InputError, match=r"nvidia.com/gpu is not an accelerator .*NVIDIA"):
        make_custom_job(JOB, "job.json", make_custom_settings(gpus=1, gpu_type="nvidia.com/gpu"))


@pytest.mark.parametrize(
    ("state", "message", "error", "expected"),
    [
        ("FAILED", "The replica workerpool0-0\nran out of memory", JobFailed, "out of memor"),
        ("CANCELLED", "", JobFailed, "cancelled: no error message from Vertex"),
        (
            "FAILED",
            "The replica workerpool1-0 exited with a non-zero status of 2. To find out",
            InputError,
            "the training rejected a setting: .*; the log names the setting: gcloud ai custom-jobs",
        ),
        ("FAILED", "The replica exited with a non-zero status of 25.", JobFailed, "status of 25"),
    ],
)
def test_a_training_that_fails(vertex, state, message, error, expected):
    vertex.end_with(JobState[f"JOB_STATE_{state}"], message)
    with pytest.raises(error, match=expected) as caught:
        vertex.run()
    assert "\n" not in str(caught.value)


def test_a_job_that_exceeds_its_timeout_is_cancelled(vertex):
    with pytest.raises(JobFailed, match=r"\(pending\) did not end within .*training_timeout"):
        vertex.run(timeout_seconds=0.1)
    assert [job.state for job in vertex.jobs] == [JobState.JOB_STATE_CANCELLED]


def test_a_refusal_by_vertex_is_an_input_error(vertex):
    vertex.server.fail("CreateCustomJob", grpc.StatusCode.INVALID_ARGUMENT, "Machine type x")
    with pytest.raises(InputError, match="refuses to start the training: 400 Machine type x"):
        vertex.run()
    assert not vertex.jobs


def test_transient_errors_of_the_api_are_retried_without_a_second_job(vertex, log):
    vertex.end_with(JobState.JOB_STATE_SUCCEEDED)
    vertex.server.fail("GetCustomJob", UNAVAILABLE, "overloaded")
    vertex.server.fail("ListCustomJobs", UNAVAILABLE, "overloaded")
    vertex.server.fail("CreateCustomJob", UNAVAILABLE, "lost", done=True)
    vertex.run()
    assert any("retrying: " in line and "overloaded" in line for line in log.messages)
    assert len(vertex.jobs) == 1


def test_an_unreachable_api_ends_the_step_and_not_the_training(vertex):
    vertex.server.fail("GetCustomJob", UNAVAILABLE, "overloaded", times=1000)
    with pytest.raises(ApiError, match="overloaded"):
        vertex.run()
    assert [job.state for job in vertex.jobs] == [JobState.JOB_STATE_PENDING]


@pytest.mark.parametrize(
    ("state", "logged", "end", "jobs"),
    [
        ("RUNNING", ": running", "SUCCEEDED", 1),
        # Its replicas still write checkpoints.
        ("CANCELLING", "is being cancelled", "CANCELLED", 2),
    ],
)
def test_a_job_of_an_earlier_attempt_is_followed(vertex, log, state, logged, end, jobs):
    settings = make_custom_settings()
    made = make_custom_job(JOB, "job.json", settings)
    vertex.server.connect(JobServiceClient).create_custom_job(
        parent=vertex_api.location(settings.project, settings.region), custom_job=made
    )
    [job] = vertex.jobs
    job.state = JobState[f"JOB_STATE_{state}"]
    vertex.end_with(JobState.JOB_STATE_SUCCEEDED)
    thread, raised = in_background(vertex.run)
    wait(lambda: any(logged in line for line in log.messages))
    assert vertex.jobs == [job]
    vertex.server.end_job(job, JobState[f"JOB_STATE_{end}"])
    thread.join(60)
    assert raised == []
    assert len(vertex.jobs) == jobs
    followed = vertex.jobs[-1].name
    assert f"Log of the CustomJob: gcloud ai custom-jobs stream-logs {followed}" in log.messages


@pytest.mark.parametrize(
    ("state", "done", "jobs"),
    [("SUCCEEDED", True, 1), ("SUCCEEDED", False, 2), ("FAILED", True, 2), ("CANCELLED", True, 2)],
)
def test_only_a_job_that_succeeded_is_not_repeated(vertex, state, done, jobs):
    vertex.end_with(JobState[f"JOB_STATE_{state}"])
    with contextlib.suppress(JobFailed):
        vertex.run()
    vertex.done = done
    vertex.end_with(JobState.JOB_STATE_SUCCEEDED)
    vertex.run()
    assert len(vertex.jobs) == jobs
    assert len({job.labels[LABEL] for job in vertex.jobs}) == 1


def test_a_cancelled_step_cancels_its_job(vertex):
    vertex.server.on_create = lambda job: os.kill(os.getpid(), signal.SIGTERM)
    with pytest.raises(SystemExit, match="143"):
        vertex.run()
    assert [job.state for job in vertex.jobs] == [JobState.JOB_STATE_CANCELLED]
