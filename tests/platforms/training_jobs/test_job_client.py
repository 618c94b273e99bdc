"""Requests to the Kubernetes API: their errors and their retries, and the choice of a kind."""

import pytest
import urllib3
from kubernetes.config import incluster_config

from core.errors import InputError
from platforms.training_jobs import client
from platforms.training_jobs.client import JobClient, Unreachable, connect, supported_kind
from platforms.training_jobs.kinds import KINDS, TFJOB
from tests.platforms.training_jobs.manifests import make_settings, pod_with
from tests.platforms.training_jobs.scripted_api import ScriptedApi, forbidden, status

NAME = "amazon-reviews-1"
JOB = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "TFJob",
    "metadata": {
        "name": NAME,
        "namespace": "kubeflow",
        "creationTimestamp": "2026-01-01T00:00:05Z",
    },
}
BROKEN = urllib3.exceptions.ProtocolError("broken")


@pytest.fixture
def server(tmp_path, monkeypatch):
    monkeypatch.setattr(client, "FIRST_PAUSE", 0.01)
    return ScriptedApi(monkeypatch, tmp_path)


@pytest.fixture
def kubernetes(server):
    return JobClient(connect(), TFJOB, "kubeflow")


def test_a_pod_is_read_with_its_end(server, kubernetes):
    pod = pod_with(137, "tensorflow")
    pod["metadata"]["labels"] = {TFJOB.task_label: "worker", TFJOB.index_label: "1"}
    server.answer("GET", f"/pods.*job-name={NAME}", (200, {"items": [pod]}))
    [seen] = kubernetes.pods(JOB)
    assert (seen.replica, seen.end_text) == ("worker 1", "ended with exit code 137")
    pod["status"] = {"phase": "Failed", "reason": "Evicted", "message": "low on memory"}
    [seen] = kubernetes.pods(JOB)
    assert (seen.to_replace, seen.end_text) == (True, "was terminated (Evicted)")


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
        (401, status(401, "Unauthorized")),
        (500, status(500, "etcdserver: leader changed")),
        (503, "upstream connect error"),
        (200, "{"),
        BROKEN,
    ],
    ids=str,
)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_transient_errors_are_retried_and_logged(server, kubernetes, log, method, answer):
    server.answer(method, "/tfjobs", answer, answer, (200, JOB))
    if method == "GET":
        assert kubernetes.get(NAME) == JOB
    elif method == "POST":
        assert kubernetes.create(JOB) == JOB
    else:
        kubernetes.delete(NAME)
    lines = [line for line in log.messages if line.startswith(f"Kubernetes API: {method} /apis")]
    assert len(lines) == 2 and all("retrying in" in line for line in lines)


def test_a_job_whose_creation_got_no_response_exists(server, kubernetes):
    server.answer("POST", "/tfjobs", BROKEN, (409, status(409, "already exists")))
    assert kubernetes.create(JOB) is None


def test_retries_end_at_the_timeout(server, kubernetes, monkeypatch):
    monkeypatch.setattr(client, "SECONDS", 0.2)
    server.answer("GET", "/tfjobs", (503, status(503, "overloaded")))
    with pytest.raises(Unreachable, match=r"failed for 0 s: GET .*/tfjobs/\S+ 503 overloaded"):
        kubernetes.get(NAME)
    assert len(server.requests) > 1


QUOTA = 'tfjobs.kubeflow.org "x" is forbidden: exceeded quota: pods, requested: 3, limited: 2'


@pytest.mark.parametrize(
    ("method", "answer", "message"),
    [
        ("POST", forbidden("create", "tfjobs"), r'cannot create resource "tfjobs"; the Role that'),
        ("POST", (403, status(403, QUOTA)), r"refuses POST \S+/tfjobs: 403 .*exceeded quota"),
        ("GET", (404, "404 page not found\n"), r"no TFJob CRD in this cluster; it belongs to"),
        ("POST", (404, status(404, 'namespaces "x" not found')), r'404 namespaces "x" not found'),
        ("POST", (400, status(400, "strict decoding\nerror")), r"refuses .* 400 strict decoding"),
    ],
)
def test_a_refusal_is_one_line_and_not_retried(server, kubernetes, method, answer, message):
    server.answer(method, "/tfjobs", answer)
    with pytest.raises(InputError, match=message) as caught:
        kubernetes.get(NAME) if method == "GET" else kubernetes.create(JOB)
    assert "\n" not in str(caught.value)
    assert len(server.requests) == 1


def test_a_pod_with_a_service_account_requires_no_kube_config(server, tmp_path, monkeypatch):
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


@pytest.mark.parametrize("content", [None, "", "{", "clusters: 1", "[]"])
def test_a_missing_cluster_is_one_line(tmp_path, monkeypatch, content):
    file = tmp_path / "config"
    if content is not None:
        file.write_text(content)
    monkeypatch.setenv("KUBECONFIG", str(file))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(InputError, match=r"no Kubernetes cluster to train on: .*KUBECONFIG"):
        connect()


def choose(server, *installed, kind="auto"):
    for each in KINDS:
        # Kubeflow Trainer v2 and others share groups with what v1 had.
        names = [each.plural] if each.name in installed else ["mpijobs"]
        found = (200, {"resources": [{"name": name} for name in names]})
        if each.name == "jobset" and each.name not in installed:
            found = (404, "404 page not found\n")
        server.answer("GET", f"/apis/{each.group}/{each.version} ", found)
    return supported_kind(connect(), make_settings(kind=kind)).name


@pytest.mark.parametrize(
    ("installed", "chosen"),
    [
        (["tfjob", "trainjob", "jobset"], "tfjob"),
        (["trainjob", "jobset"], "jobset"),
    ],
)
def test_auto_takes_the_first_kind_that_the_cluster_has(server, log, installed, chosen):
    assert choose(server, *installed) == chosen
    assert f"kubeflow.training_job auto: {chosen}" in log.text


def test_a_cluster_without_any_kind_is_an_error(server):
    with pytest.raises(InputError, match=r"neither the Kubeflow training operator.* nor .*JobSet"):
        choose(server)


def test_a_kind_that_is_set_is_taken_without_a_request(server):
    assert [choose(server, kind=kind.name) for kind in KINDS] == [kind.name for kind in KINDS]
    assert server.requests == []
