"""Requests to the Kubernetes API: their errors and their retries, and the choice of a kind."""

import pytest
import urllib3
from kubernetes.client import ApiClient
from kubernetes.client.rest import RESTClientObject
from kubernetes.config import incluster_config

from core.errors import InputError
from platforms.kubernetes_api import connect
from platforms.training_jobs import client
from platforms.training_jobs.client import JobClient, Unreachable, supported_kind
from platforms.training_jobs.kinds import TFJOB, TRAINJOB
from tests.platforms.training_jobs.manifests import make_settings, pod_with
from tests.platforms.training_jobs.scripted_api import ScriptedApi, status

NAME = "amazon-reviews-1"
JOB = {"metadata": {"name": NAME, "creationTimestamp": "2026-01-01T00:00:05Z"}}


def forbidden(verb, resource):
    return status(403, f'User "system:serviceaccount:ml:any" cannot {verb} resource "{resource}"')


BROKEN = urllib3.exceptions.ProtocolError("broken")
NO_CRD = (404, "404 page not found\n")


@pytest.fixture
def server(monkeypatch):
    server = ScriptedApi()
    monkeypatch.setattr(client, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(RESTClientObject, "request", server.request)
    return server


@pytest.fixture
def kubernetes(server):
    return JobClient(ApiClient(), TFJOB, "kubeflow")


def test_a_pod_is_read_with_its_end(server, kubernetes):
    pod = pod_with(137, "tensorflow")
    pod["metadata"]["labels"] = {TFJOB.task_label: "worker", TFJOB.index_label: "1"}
    server.answer("GET", f"/pods.*job-name={NAME}", (200, {"items": [pod]}))
    [seen] = kubernetes.pods(JOB)
    assert (seen.replica, seen.end_text) == ("worker 1", "ended with exit code 137")
    pod["status"] = {"phase": "Failed", "reason": "Evicted", "message": "low on memory"}
    [seen] = kubernetes.pods(JOB)
    assert (seen.to_replace, seen.end_text) == (True, "was terminated (Evicted)")


def test_an_expected_answer_is_a_result_and_is_requested_once(server, kubernetes):
    assert kubernetes.get(NAME) is None
    assert kubernetes.delete(NAME) is None
    server.answer("POST", "/tfjobs", status(409, "exists"))
    assert kubernetes.create({}) is None
    assert len(server.requests) == 3


def test_the_warnings_about_a_job_and_its_objects_are_read_the_newest_last(server, kubernetes):
    def event(name, second):
        created = {"creationTimestamp": f"2026-01-01T00:00:{second:02}Z"}
        return {"metadata": created, "involvedObject": {"kind": "Job", "name": name}}

    items = [event(f"{NAME}-ps-0", 9), event(NAME, 7), event(NAME, 4), event("x", 8)]
    server.answer("GET", "/events.*type=Warning", (200, {"items": items}))
    assert kubernetes.warnings(JOB) == [items[1], items[0]]


@pytest.mark.parametrize(
    "answer",
    [
        status(401, "Unauthorized"),
        status(429, "slow down"),
        (503, "upstream connect error"),
        (200, "{"),
        BROKEN,
    ],
)
def test_transient_errors_are_retried_and_logged(server, kubernetes, log, answer):
    server.answer("GET", "/tfjobs", answer, answer, (200, JOB))
    assert kubernetes.get(NAME) == JOB
    lines = [line for line in log.messages if line.startswith("Kubernetes API: GET /apis")]
    assert len(lines) == 2 and all("retrying in" in line for line in lines)


def test_a_job_whose_creation_got_no_response_exists(server, kubernetes):
    server.answer("POST", "/tfjobs", BROKEN, status(409, "already exists"))
    assert kubernetes.create(JOB) is None


def test_retries_end_at_the_timeout(server, kubernetes, monkeypatch):
    monkeypatch.setattr(client, "SECONDS", 0.2)
    server.answer("GET", "/tfjobs", status(503, "overloaded"))
    with pytest.raises(Unreachable, match=r"failed for 0 s: GET .*/tfjobs/\S+ 503 overloaded"):
        kubernetes.get(NAME)
    assert len(server.requests) > 1


def test_the_pause_is_the_one_that_the_api_requests(server, kubernetes, monkeypatch):
    pauses = []
    monkeypatch.setattr(client.time, "sleep", pauses.append)
    server.headers = {"Retry-After": "7"}
    server.answer("GET", "/tfjobs", status(429, "slow down"), (200, JOB))
    assert kubernetes.get(NAME) == JOB
    assert pauses == [7.0]
    server.headers = {"Retry-After": "3600"}
    server.answer("GET", "/tfjobs", status(429, "slow down"))
    with pytest.raises(Unreachable, match=r"requires a pause of 3600 s: .* 429 slow down"):
        kubernetes.get(NAME)
    assert pauses == [7.0]


def test_a_pause_has_a_limit(server, kubernetes, monkeypatch):
    pauses = []
    monkeypatch.setattr(client.time, "sleep", pauses.append)
    monkeypatch.setattr(client, "FIRST_PAUSE", 8.0)
    server.answer("GET", "/tfjobs", *[status(503, "overloaded")] * 5, (200, JOB))
    assert kubernetes.get(NAME) == JOB
    assert pauses == [8.0, 16.0, 30.0, 30.0, 30.0]


QUOTA = 'tfjobs.kubeflow.org "x" is forbidden: exceeded quota: pods, requested: 3, limited: 2'


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (forbidden("create", "tfjobs"), r'cannot create resource "tfjobs"; the Role that'),
        (status(403, QUOTA), r"refuses POST \S+/tfjobs: 403 .*exceeded quota"),
        (NO_CRD, r"no TFJob CRD in this cluster; it belongs to"),
        (status(404, 'namespaces "x" not found'), r'404 namespaces "x" not found'),
        (status(400, "strict decoding\nerror"), r"refuses .* 400 strict decoding"),
    ],
)
def test_a_refusal_is_one_line_and_not_retried(server, kubernetes, answer, message):
    server.answer("POST", "/tfjobs", answer)
    with pytest.raises(InputError, match=message) as caught:
        kubernetes.create(JOB)
    assert "\n" not in str(caught.value)
    assert len(server.requests) == 1


def test_a_pod_with_a_service_account_requires_no_kube_config(tmp_path, monkeypatch):
    token, authority = tmp_path / "token", tmp_path / "ca.crt"
    token.write_text("secret")
    authority.write_text("-")
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(token))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(authority))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    configuration = connect().configuration
    assert configuration.host == "https://10.0.0.1:443"
    assert configuration.api_key["authorization"] == "bearer secret"


SERVER_NO_URL = """
apiVersion: v1
kind: Config
current-context: a
contexts: [{name: a, context: {cluster: b, user: c}}]
clusters: [{name: b, cluster: {server: 5}}]
users: [{name: c, user: {}}]
"""


@pytest.mark.parametrize("content", [None, "", "{", "clusters: 1", "[]", SERVER_NO_URL])
def test_a_missing_cluster_is_one_line(tmp_path, monkeypatch, content):
    file = tmp_path / "config"
    if content is not None:
        file.write_text(content)
    monkeypatch.setenv("KUBECONFIG", str(file))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(InputError, match=r"no Kubernetes cluster: .*KUBECONFIG"):
        connect()


@pytest.mark.parametrize(
    ("tfjobs", "chosen", "reason"),
    [
        (status(404, "not found"), "tfjob", "tfjob"),
        (NO_CRD, "jobset", "jobset; no TFJob CRD in this cluster"),
        (forbidden("get", "tfjobs"), "jobset", 'cannot get resource "tfjobs"'),
    ],
)
def test_auto_takes_the_first_kind_that_the_step_may_create(server, log, tfjobs, chosen, reason):
    server.answer("GET", "/tfjobs/", tfjobs)
    assert supported_kind(ApiClient(), make_settings(kind="auto")).name == chosen
    [message] = [each for each in log.messages if "kubeflow.training_job auto:" in each]
    assert reason in message


def test_a_cluster_without_any_kind_is_an_error_unless_one_is_set(server):
    server.answer("GET", "/(tfjobs|jobsets)/", NO_CRD)
    with pytest.raises(InputError, match=r"several machines: no TFJob CRD.*; no JobSet CRD"):
        supported_kind(ApiClient(), make_settings(kind="auto"))
    assert supported_kind(ApiClient(), make_settings(kind="trainjob")) is TRAINJOB
