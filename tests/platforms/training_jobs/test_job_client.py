"""Requests to the Kubernetes API: their errors and their retries, and the choice of a kind."""

import re

import pytest
import urllib3
from kubernetes.client.exceptions import ApiException
from kubernetes.config import incluster_config

from core.errors import InputError
from platforms.training_jobs import client
from platforms.training_jobs.client import Forbidden, JobClient, Unreachable, connect
from platforms.training_jobs.kinds import KINDS, supported_kind
from platforms.training_jobs.tfjob import INDEX_LABEL, TYPE_LABEL, TFJob
from platforms.training_jobs.trainjob import TrainJob
from tests.platforms.training_jobs.manifests import make_settings, pod_with
from tests.platforms.training_jobs.scripted_api import ScriptedApi, forbidden, status

NAME = "amazon-reviews-1"
JOB = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "TFJob",
    "metadata": {"name": NAME, "namespace": "kubeflow"},
}

BROKEN = urllib3.exceptions.ProtocolError("broken")


@pytest.fixture
def server(tmp_path, monkeypatch):
    monkeypatch.setattr(client, "FIRST_PAUSE", 0.01)
    return ScriptedApi(monkeypatch, tmp_path)


@pytest.fixture
def kubernetes(server):
    return JobClient(connect(), TFJob(), "kubeflow")


def test_a_pod_is_read_with_its_end(server, kubernetes):
    pod = pod_with(137, "tensorflow")
    pod["metadata"]["labels"] = {TYPE_LABEL: "worker", INDEX_LABEL: "1"}
    server.answer("GET", f"/pods.*job-name={NAME}", (200, {"items": [pod]}))
    [seen] = kubernetes.pods(JOB)
    assert (seen.replica, seen.end_text) == ("worker 1", "was killed, exit code 137")
    pod["status"] = {"phase": "Failed", "reason": "Evicted", "message": "low on memory"}
    [seen] = kubernetes.pods(JOB)
    assert seen.end_text == "was terminated (Evicted)"
    assert (seen.failed, seen.failed_permanently) == (True, False)


@pytest.mark.parametrize(
    "answer",
    [
        (429, status(429, "slow down")),
        (500, status(500, "etcdserver: leader changed")),
        (503, "upstream connect error"),
        (504, ""),
        (200, "{"),
        BROKEN,
        urllib3.exceptions.ReadTimeoutError(None, "", "slow"),
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
    lines = [record.getMessage() for record in log.records if "Kubernetes API" in record.message]
    assert len(lines) == 2
    assert all(re.search("tfjobs in namespace kubeflow.*retrying in", line) for line in lines)


def test_a_job_whose_creation_got_no_response_exists(server, kubernetes):
    server.answer("POST", "/tfjobs", BROKEN, (409, status(409, "already exists")))
    assert kubernetes.create(JOB) is None


def test_an_expired_token_is_replaced_and_the_request_retried(server, kubernetes, log):
    unauthorized = (401, status(401, "Unauthorized"))
    server.answer("GET", "/tfjobs", (200, JOB), unauthorized, unauthorized, (200, JOB))
    assert kubernetes.get(NAME) == kubernetes.get(NAME) == JOB
    assert len([line for line in log.messages if "401 Unauthorized; retrying" in line]) == 2
    server.answer("GET", "/log", unauthorized)
    with pytest.raises(ApiException):
        kubernetes.log("pod", None)


def test_retries_end_at_the_timeout(server, kubernetes, monkeypatch):
    monkeypatch.setattr(client, "SECONDS", 0.2)
    server.answer("GET", "/tfjobs", (503, status(503, "overloaded")))
    message = r"unreachable for 0 s: get tfjobs .* \(last error: 503 overloaded\)"
    with pytest.raises(Unreachable, match=message):
        kubernetes.get(NAME)
    assert len(server.requests) > 1


NAMESPACE = status(404, 'namespaces "kubeflow" not found', name="kubeflow", kind="namespaces")
QUOTA = 'tfjobs.kubeflow.org "x" is forbidden: exceeded quota: pods, requested: 3, limited: 2'
INVALID = 'TFJob.kubeflow.org "x" is invalid: spec.tfReplicaSpecs: Required value'


@pytest.mark.parametrize(
    ("method", "answer", "message"),
    [
        (
            "POST",
            forbidden("create", "tfjobs"),
            "does not allow this step to create tfjobs in namespace kubeflow: .*default-editor.*; "
            ".* a Role with the verbs create, get and delete on tfjobs",
        ),
        (
            "GET",
            (401, status(401, "Unauthorized")),
            "rejects the credentials to get tfjobs .* Role wi",
        ),
        ("POST", (403, status(403, QUOTA)), "refuses to create tfjobs .* 403 .*exceeded quota"),
        ("POST", (404, "404 page not found\n"), "no TFJob CRD in this cluster: install the Kub"),
        ("GET", (404, "404 page not found\n"), "no TFJob CRD in this cluster: install the Kub"),
        ("POST", (404, NAMESPACE), "no namespace kubeflow"),
        ("POST", (422, status(422, INVALID)), "refuses to create .* 422 .*tfReplicaSpecs: Req"),
        ("POST", (400, status(400, "strict decoding error")), "refuses .* 400 strict decoding"),
    ],
)
def test_a_refusal_is_one_line_and_not_retried(server, kubernetes, method, answer, message):
    server.answer(method, "/tfjobs", answer)
    with pytest.raises(InputError, match=message) as caught:
        kubernetes.get(NAME) if method == "GET" else kubernetes.create(JOB)
    assert "\n" not in str(caught.value)
    assert len(server.requests) == 1
    assert isinstance(caught.value, Forbidden) == ("Role" in message)


def test_the_log_of_a_pod_may_be_forbidden(server, kubernetes):
    server.answer("GET", "/log", forbidden("get", "pods/log"))
    with pytest.raises(Forbidden, match=r"allow this step to get pods/log .*get on pods/log"):
        kubernetes.log("pod", None)


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


RUNTIMES = "clustertrainingruntimes"


def choose(server, *installed, kind="auto"):
    for each in KINDS:
        if each.name in installed:
            resources = {"resources": [{"name": each.plural}]}
            server.answer("GET", f"/apis/{each.group}/{each.version}/? ", (200, resources))
    return supported_kind(connect(), make_settings(kind=kind)).name


@pytest.mark.parametrize(
    ("installed", "logged"),
    [
        (["tfjob", "trainjob", "jobset"], "auto: tfjob"),
        (["trainjob", "jobset"], "auto: trainjob (no TFJob CRD)"),
        (["jobset"], "auto: jobset (no TFJob CRD; no TrainJob CRD)"),
    ],
)
def test_auto_takes_the_first_kind_that_the_cluster_has(server, log, installed, logged):
    server.answer("GET", RUNTIMES, (200, {}))
    assert choose(server, *installed) == installed[0]
    assert [line for line in log.messages if line.endswith(logged)]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ((404, status(404, "not found")), "no ClusterTrainingRuntime amazon-reviews"),
        (forbidden("get", RUNTIMES), "does not allow this step to get clustertrainingruntimes"),
    ],
)
def test_a_trainjob_requires_our_runtime(server, log, answer, reason):
    server.answer("GET", RUNTIMES, answer)
    assert choose(server, "trainjob", "jobset") == "jobset"
    assert reason in log.text


def test_a_cluster_without_any_kind_is_an_error(server):
    # Kubeflow Trainer v2 and others share groups with what v1 had.
    server.answer("GET", r"/apis/kubeflow\.org/v1/? ", (200, {"resources": [{"name": "mpijobs"}]}))
    with pytest.raises(InputError, match=r"no TFJob CRD; no TrainJob CRD; no JobSet CRD\. Install"):
        choose(server)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_kind_that_is_set_is_taken_without_a_request(server, kind):
    assert choose(server, kind=kind.name) == kind.name
    assert server.requests == []


def test_a_missing_runtime_names_the_file_that_has_it(server):
    message = "admission webhook denied the request: spec.runtimeRef: Invalid value: not found"
    server.answer("POST", "/trainjobs", (403, status(403, message)))
    with pytest.raises(InputError, match=r"403 .*applies kubeflow/training.yaml"):
        JobClient(connect(), TrainJob(), "ml").create({})
