"""Submitting to Vertex AI: the generated client of its API against a real server."""

import json
from unittest.mock import Mock

import grpc
import pytest
from google.auth.exceptions import RefreshError, TransportError
from google.cloud.aiplatform_v1 import types

from core.errors import ConfigError, InputError, ServerError
from platforms import input_cache
from platforms.google_credentials import find_credentials
from platforms.vertex import client as vertex_client
from tests.platforms.submission import JOB
from tests.platforms.vertex.vertex_server import as_json


def test_vertex_gets_the_job_with_the_fingerprint_of_the_input(vertex, monkeypatch):
    monkeypatch.setattr(input_cache, "input_fingerprint", lambda *_: "num_files:1")
    more = {"vertex__service_account": "runner@my-project", "vertex__network": "net"}
    assert vertex("epochs=3", cache=True, **more) == 0
    ((name, job),) = vertex.server.pipeline_jobs.items()
    name = name.rpartition("/")[2]
    sent = as_json(job)
    task = sent.pop("pipelineSpec")["root"]["dag"]["tasks"]["ReviewExampleGen"]
    assert task["cachingOptions"] == {"enableCache": True}
    options = json.loads(task["inputs"]["parameters"]["options"]["runtimeValue"]["constant"])
    assert options["input_fingerprint"] == "num_files:1"
    assert sent == {
        **{key: value for key, value in JOB.items() if key != "pipelineSpec"},
        "name": job.name,
        "displayName": name,
        "runtimeConfig": {
            "gcsOutputDirectory": "gs://bucket/root",
            "parameterValues": {"epochs": 3},
        },
        "serviceAccount": "runner@my-project",
        "network": "net",
    }
    assert vertex.lines == [
        f"submitted {name}",
        "https://console.cloud.google.com/vertex-ai/locations/europe-west4/pipelines/runs/"
        f"{name}?project=my-project",
    ]


def test_vertex_is_followed_to_failure(vertex):
    succeeded = {"task_name": "ReviewExampleGen", "state": 3}
    trainer = {
        "task_name": "Trainer",
        "state": types.PipelineTaskDetail.State.FAILED,
        "executor_detail": {"container_detail": {"main_job": "projects/1/locations/x/jobs/2"}},
        "error": {"code": 9, "message": "The replica workerpool0-0\nexited with a non-zero status"},
    }
    graph = {"task_name": "amazon-reviews", "state": types.PipelineTaskDetail.State.FAILED}
    states = types.PipelineState
    vertex.server.states = [
        {"state": states.PIPELINE_STATE_PENDING},
        {"state": states.PIPELINE_STATE_RUNNING, "job_detail": {"task_details": [succeeded]}},
        {
            "state": states.PIPELINE_STATE_FAILED,
            "job_detail": {"task_details": [graph, succeeded, trainer]},
            "error": {"code": 9, "message": "The DAG failed because some tasks failed."},
        },
    ]
    vertex.server.fail("GetPipelineJob", grpc.StatusCode.UNAVAILABLE, "restarting")
    assert vertex(wait=True) == 1
    name = vertex.lines[0].removeprefix("submitted ")
    assert vertex.states == [
        f"{name}: pending",
        "ReviewExampleGen: succeeded",
        f"{name}: running",
        "Trainer: failed",
        f"{name}: failed",
    ]
    assert (
        "no response (Vertex AI failed to read the run: 503 restarting); retrying" in vertex.lines
    )
    assert vertex.lines[-2] == (
        "Trainer failed: The replica workerpool0-0 exited with a non-zero status "
        "(log: gcloud ai custom-jobs stream-logs projects/1/locations/x/jobs/2)"
    )


@pytest.mark.parametrize(
    ("status", "done"),
    [
        (grpc.StatusCode.UNAVAILABLE, False),
        (grpc.StatusCode.UNAVAILABLE, True),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, False),  # HTTP 429
    ],
)
def test_vertex_starts_one_run_whatever_the_number_of_requests(vertex, status, done):
    vertex.server.fail("CreatePipelineJob", status, "lost", done=done)
    assert vertex() == 0
    assert len(vertex.server.find_requests("CreatePipelineJob")) == 2
    assert len(vertex.server.pipeline_jobs) == 1


@pytest.mark.parametrize(
    "status", [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED]
)
def test_vertex_that_does_not_respond(vertex, monkeypatch, status):
    monkeypatch.setattr(vertex_client, "RETRY_SECONDS", 0.1)
    vertex.server.fail("CreatePipelineJob", status, "upstream", times=10)
    with pytest.raises(ServerError, match=r"upstream.* was submitted, check https://console"):
        vertex()


def test_vertex_refuses_the_job(vertex):
    vertex.server.fail("CreatePipelineJob", grpc.StatusCode.PERMISSION_DENIED, "denied")
    with pytest.raises(InputError, match="denies the permission to submit the run: "):
        vertex()


def test_credentials_that_cannot_be_refreshed_submit_nothing(vertex, monkeypatch):
    credentials = Mock(refresh=Mock(side_effect=RefreshError("Reauthenticate.")))
    monkeypatch.setattr(vertex_client, "find_credentials", lambda *arguments: credentials)
    with pytest.raises(ConfigError, match=r"are not valid \(Reauthenticate\.\)"):
        vertex()
    assert not vertex.server.requests


def test_an_unreachable_server_of_the_credentials_is_no_wrong_login(vertex, monkeypatch):
    credentials = Mock(refresh=Mock(side_effect=TransportError("Connection refused")))
    monkeypatch.setattr(vertex_client, "find_credentials", lambda *arguments: credentials)
    with pytest.raises(ConfigError, match=r"not reachable \(Connection refused\); check"):
        vertex()
    assert not vertex.server.requests


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "File .* was not found"),
        ("token", "is not a valid json file.: Expecting value"),
        ("[]", "AttributeError: 'list' object"),
        ('{"type": "service_account"}', "missing fields"),
    ],
)
def test_a_wrong_file_of_credentials_is_not_reported_as_missing_credentials(
    monkeypatch, tmp_path, content, reason
):
    file = tmp_path / "credentials.json"
    if content:
        file.write_text(content)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
    message = f"^vertex.project: p requires .*, and those of this machine cannot be .*{reason}"
    with pytest.raises(ConfigError, match=message) as error:
        find_credentials("vertex.project", "p")
    assert f"GOOGLE_APPLICATION_CREDENTIALS is {file})" in str(error.value)
    # A login alone has no effect.
    assert "to another file, or unset it and run `gcloud auth " in str(error.value)
    assert "there are none" not in str(error.value)
