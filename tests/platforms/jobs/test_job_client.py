"""Requests to the Kubernetes API: their errors and their retries."""

import re
import socket
import time

import pytest
from kubernetes.client.exceptions import ApiException
from kubernetes.config import incluster_config

from core.errors import InputError
from platforms.jobs.kubernetes.client import JobClient, RetryPolicy, connect
from platforms.jobs.kubernetes.errors import Forbidden, Unreachable
from platforms.jobs.tfjob.status import TFJob
from tests.platforms.jobs.kubelet import free_ports
from tests.platforms.jobs.kubernetes_http import forbidden, status

NAME = "amazon-reviews-1"
JOB = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "TFJob",
    "metadata": {"name": NAME, "namespace": "kubeflow"},
}
QUICK = RetryPolicy(timeout=60.0, first_pause=0.01, longest_pause=0.05, request_timeout=1.0)


@pytest.fixture
def kubernetes(server):
    return JobClient(connect(), TFJob(), "kubeflow", QUICK)


def test_a_job_is_created_found_and_deleted(server, kubernetes):
    assert kubernetes.get(NAME) is None
    created = kubernetes.create(JOB)
    assert created["metadata"]["uid"]
    assert kubernetes.get(NAME) == created
    kubernetes.delete(NAME)
    assert kubernetes.get(NAME) is None
    kubernetes.delete(NAME)


def test_an_existing_job_is_not_created_again(server, kubernetes):
    created = kubernetes.create(JOB)
    assert kubernetes.create(JOB) is None
    assert kubernetes.get(NAME) == created


def test_pods_are_those_of_the_one_job(server, kubernetes):
    other = {"kind": "TFJob", "metadata": {"name": "other", "namespace": "kubeflow"}}
    server.add_pod(other, "worker", 0)
    server.start_pod(server.add_pod(JOB, "chief", 0))
    server.end_pod(server.add_pod(JOB, "worker", 0), 1)
    server.end_pod(server.add_pod(JOB, "worker", 1), 137, "OOMKilled")
    seen = {pod.replica: (pod.phase, pod.exit_code, pod.end_text) for pod in kubernetes.pods(JOB)}
    assert seen == {
        "chief": ("Running", None, "was terminated (no reason from Kubernetes)"),
        "worker 0": ("Failed", 1, "ended with exit code 1"),
        "worker 1": ("Failed", 137, "was killed, exit code 137, OOMKilled"),
    }


def test_an_evicted_pod_has_no_exit_code(server, kubernetes):
    pod = server.add_pod(JOB, "worker", 0)
    pod["status"] = {"phase": "Failed", "reason": "Evicted", "message": "low on memory"}
    [seen] = kubernetes.pods(JOB)
    assert seen.end_text == "was terminated (Evicted)"
    assert (seen.failed, seen.failed_permanently) == (True, False)


@pytest.mark.parametrize(
    "answer",
    [
        (429, status(429, "slow down"), {"Retry-After": "1"}),
        (500, status(500, "etcdserver: leader changed")),
        (503, "upstream connect error"),
        (504, ""),
        (200, "{"),
        "drop",
        "hang",
    ],
    ids=str,
)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_transient_errors_are_retried_and_logged(server, kubernetes, log, method, answer):
    if method != "POST":
        kubernetes.create(JOB)
    server.fail(method, "/tfjobs", answer, answer)
    if method == "GET":
        assert kubernetes.get(NAME)["metadata"]["uid"]
    elif method == "POST":
        assert kubernetes.create(JOB)["metadata"]["uid"]
    else:
        kubernetes.delete(NAME)
    assert (NAME in server.jobs) == (method != "DELETE")
    lines = [record.getMessage() for record in log.records if "Kubernetes API" in record.message]
    assert len(lines) == 2
    assert all(re.search("tfjobs in namespace kubeflow.*retrying in", line) for line in lines)


def test_an_expired_token_is_replaced_and_the_request_retried(server, kubernetes, log):
    kubernetes.create(JOB)
    unauthorized = (401, status(401, "Unauthorized"))
    server.fail("GET", "/tfjobs", unauthorized, unauthorized)
    assert kubernetes.get(NAME)["metadata"]["uid"]
    assert len([line for line in log.messages if "401 Unauthorized; retrying" in line]) == 2
    server.fail("GET", "/log", unauthorized)
    with pytest.raises(ApiException):
        kubernetes.log("pod", None)


def test_retry_after_is_respected(server):
    retries = RetryPolicy(first_pause=0.01, longest_pause=1.0)
    patient = JobClient(connect(), TFJob(), "kubeflow", retries)
    server.fail("GET", "/tfjobs", (429, status(429, "slow down"), {"Retry-After": "1"}))
    started = time.monotonic()
    patient.get(NAME)
    assert time.monotonic() - started > 0.9


def test_retries_end_at_the_timeout(server):
    hasty = JobClient(connect(), TFJob(), "kubeflow", RetryPolicy(timeout=0.2, first_pause=0.05))
    server.fail("GET", "/tfjobs", (503, status(503, "overloaded")), "always")
    message = r"unreachable for 0 s: get tfjobs .* \(last error: 503 overloaded\)"
    with pytest.raises(Unreachable, match=message):
        hasty.get(NAME)
    assert len(server.requests) > 1


def test_the_error_names_a_server_that_does_not_exist(server):
    hasty = JobClient(connect(), TFJob(), "kubeflow", RetryPolicy(timeout=0.1, first_pause=0.05))
    server.close()
    with pytest.raises(Unreachable, match=f"127.0.0.1.*{server.port}|refused"):
        hasty.get(NAME)


NAMESPACE = status(404, 'namespaces "kubeflow" not found', name="kubeflow", kind="namespaces")
QUOTA = 'tfjobs.kubeflow.org "x" is forbidden: exceeded quota: pods, requested: 3, limited: 2'
INVALID = 'TFJob.kubeflow.org "x" is invalid: spec.tfReplicaSpecs: Required value'


@pytest.mark.parametrize(
    ("method", "answer", "message"),
    [
        (
            "POST",
            forbidden("create", "tfjobs", "kubeflow.org"),
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
    server.fail(method, "/tfjobs", answer, "always")
    with pytest.raises(InputError, match=message) as caught:
        kubernetes.get(NAME) if method == "GET" else kubernetes.create(JOB)
    assert "\n" not in str(caught.value)
    assert len(server.requests) == 1
    assert isinstance(caught.value, Forbidden) == ("Role" in message)


def test_the_log_of_a_pod_may_be_forbidden(server, kubernetes):
    server.fail("GET", "/log", forbidden("get", "pods/log"))
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


def test_a_connection_without_a_response_times_out(tmp_path, monkeypatch, server):
    [port] = free_ports(1)
    server.port = port
    monkeypatch.setenv("KUBECONFIG", server.kube_config(tmp_path))
    retries = RetryPolicy(timeout=0.1, first_pause=0.2, request_timeout=0.2)
    hasty = JobClient(connect(), TFJob(), "kubeflow", retries)
    with (
        socket.create_server(("127.0.0.1", port)),
        pytest.raises(Unreachable, match=r"Read timed out\. \(read timeout=0\.2\)"),
    ):
        hasty.get(NAME)
