"""Submitting to Vertex AI: the generated client of its REST API against a real server."""

import pytest
import requests
from google.api_core.exceptions import RetryError
from google.auth.credentials import AnonymousCredentials
from google.auth.exceptions import RefreshError, TransportError
from google.cloud.aiplatform_v1.services.pipeline_service import PipelineServiceClient
from urllib3 import exceptions

from core.errors import ConfigError, UserError
from pipeline.config import PipelineConfig
from platforms.follow import NoResponse
from platforms.vertex import client as vertex_client
from tests.platforms.kubeflow.kfp_server import LOGIN_PAGE
from tests.platforms.submission import JOB, vertex_state


def test_vertex_gets_the_job(vertex):
    code = vertex("epochs=3", vertex__service_account="runner@my-project", vertex__network="net")
    assert code == 0
    ((name, job),) = vertex.server.jobs.items()
    assert job == {
        **JOB,
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
        "https://console.cloud.google.com/vertex-ai/locations/us-central1/pipelines/runs/"
        f"{name}?project=my-project",
    ]


def test_vertex_without_cache(vertex):
    vertex(cache=False)
    (job,) = vertex.server.jobs.values()
    tasks = job["pipelineSpec"]["root"]["dag"]["tasks"].values()
    assert [task["cachingOptions"] for task in tasks] == [{"enableCache": False}] * 2


def test_vertex_is_followed_to_failure(vertex):
    trainer = {
        "taskName": "Trainer",
        "state": "FAILED",
        "executorDetail": {"containerDetail": {"mainJob": "projects/1/locations/x/customJobs/2"}},
        "error": {"code": 9, "message": "The replica workerpool0-0\nexited with a non-zero status"},
    }
    vertex.server.states = [
        vertex_state("PENDING"),
        vertex_state("RUNNING", {"taskName": "ReviewExampleGen", "state": "SUCCEEDED"}),
        vertex_state(
            "FAILED",
            {"taskName": "amazon-reviews", "state": "FAILED", "error": {"message": "The DAG"}},
            {"taskName": "ReviewExampleGen", "state": "SUCCEEDED"},
            trainer,
            error="The DAG failed because some tasks failed. The failed tasks are: [Trainer].",
        ),
    ]
    assert vertex(wait=True) == 1
    name = vertex.lines[0].removeprefix("submitted ")
    assert vertex.states == [
        f"{name}: pending",
        "ReviewExampleGen: succeeded",
        f"{name}: running",
        "Trainer: failed",
        f"{name}: failed",
    ]
    assert vertex.lines[-2] == (
        "Trainer failed: The replica workerpool0-0 exited with a non-zero status "
        "(log: gcloud ai custom-jobs stream-logs projects/1/locations/x/customJobs/2)"
    )


def test_vertex_is_followed_to_success(vertex):
    vertex.server.states = [vertex_state("RUNNING"), vertex_state("SUCCEEDED")]
    assert vertex(wait=True) == 0


@pytest.mark.parametrize("status", [0, 503])
def test_vertex_starts_one_run_whatever_the_number_of_requests(vertex, status):
    vertex.server.fail("POST", "pipelineJobs", status, "upstream", times=2)
    assert vertex() == 0
    assert len(vertex.server.find_requests("POST")) == 3
    assert len(vertex.server.jobs) == 1


def test_vertex_that_does_not_respond(vertex, monkeypatch):
    monkeypatch.setattr(vertex_client, "RETRY_SECONDS", 0.1)
    vertex.server.fail("POST", "pipelineJobs", 503, "upstream", times=10)
    assert vertex() == 1
    (line,) = vertex.lines
    assert "was submitted, check https://console" in line


@pytest.mark.parametrize(
    ("status", "reason", "message"),
    [
        (401, "Request had invalid credentials.", "project: the Google Cloud credentials are no"),
        (403, "Permission 'aiplatform.pipelineJobs.create' denied", "project: .*aiplatform.user"),
        (404, None, "region: us-central1 in my-project is not found"),
    ],
)
def test_vertex_denies_access(vertex, status, reason, message):
    body = {"error": {"code": status, "message": reason}} if reason else LOGIN_PAGE
    vertex.server.fail("POST", "pipelineJobs", status, body)
    with pytest.raises(ConfigError, match=f"^vertex.{message}"):
        vertex()


def test_vertex_refuses_the_job(vertex):
    body = {"error": {"code": 400, "message": "Unsupported schema version"}}
    vertex.server.fail("POST", "pipelineJobs", 400, body)
    assert vertex() == 1
    assert vertex.lines == ["Vertex AI refused the run: Unsupported schema version"]


def connect_to(monkeypatch, url, credentials):
    """Replace the connection to Vertex AI."""

    def connect(config, service=PipelineServiceClient):
        options = {"api_endpoint": url}
        return service(credentials=credentials, transport="rest", client_options=options)

    monkeypatch.setattr(vertex_client, "connect", connect)


def test_an_unknown_region(vertex, monkeypatch):
    connect_to(monkeypatch, "http://x-aiplatform.invalid", AnonymousCredentials())
    monkeypatch.setattr(vertex_client, "RETRY_SECONDS", 0.1)
    with pytest.raises(ConfigError, match=r"vertex.region: .*\. Check that us-central1"):
        vertex()


def test_a_lost_connection_does_not_end_the_following(vertex, monkeypatch):
    config = PipelineConfig.model_validate(vertex.settings)
    connect_to(monkeypatch, "http://x-aiplatform.invalid", AnonymousCredentials())
    run = vertex_client.VertexRun(config, vertex_client.connect(config), "r")
    with pytest.raises(NoResponse):
        run.status()


def test_credentials_that_cannot_be_refreshed_submit_nothing(vertex, monkeypatch):
    class Offline(AnonymousCredentials):
        def before_request(self, request, method, url, headers):
            raise TransportError("no route to oauth2.googleapis.com")

    connect_to(monkeypatch, vertex.server.url, Offline())
    monkeypatch.setattr(vertex_client, "RETRY_SECONDS", 0.1)
    assert vertex() == 1
    assert vertex.lines == [
        "the credentials cannot be refreshed: no route to oauth2.googleapis.com"
    ]


def test_a_request_that_was_sent_before_the_connection_was_lost_may_have_created_a_run(vertex):
    config = PipelineConfig.model_validate(vertex.settings)
    reset = requests.ConnectionError(exceptions.ProtocolError("Connection reset by peer"))
    down = exceptions.NewConnectionError(None, "Network is unreachable")
    lost = requests.ConnectionError(exceptions.MaxRetryError(None, "/", down))
    for attempts, message in (([lost], "Check that us-central1"), ([reset, lost], "is unknown")):
        with (
            pytest.raises(UserError, match=message),
            vertex_client.readable_errors(config, "run-1", "link", attempts),
        ):
            raise RetryError("timeout", cause=lost)


def test_expired_credentials(vertex, monkeypatch):
    class Expired(AnonymousCredentials):
        def before_request(self, request, method, url, headers):
            raise RefreshError("Reauthentication is needed.")

    connect_to(monkeypatch, vertex.server.url, Expired())
    with pytest.raises(ConfigError, match=r"credentials are not valid \(Reauthentication is need"):
        vertex()
