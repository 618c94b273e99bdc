"""Submitting to Kubeflow Pipelines: the client of its REST API against a real server."""

import contextlib
import datetime
import json
import re
import socket
import ssl
import threading
from unittest.mock import Mock

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from core.errors import ConfigError, ServerError
from platforms.kubeflow import api as kubeflow_api
from tests.platforms.kubeflow.kfp_server import LOGIN_PAGE
from tests.platforms.submission import PLATFORM


def sent_tasks(kubeflow):
    run = kubeflow.server.find_requests("POST", "/runs")[-1]
    return run.body["pipeline_spec"]["pipeline_spec"]["root"]["dag"]["tasks"]


def cached_tasks(kubeflow):
    tasks = sent_tasks(kubeflow).items()
    return [name for name, task in tasks if task["cachingOptions"].get("enableCache")]


@pytest.fixture
def reviews(kubeflow, tmp_path):
    """A folder of raw files that this machine can list, and that the compiled pipeline reads."""
    folder = tmp_path / "raw"
    folder.mkdir()
    (folder / "reviews.csv").write_text("label,text\n1,bad\n")
    volume = {"claim": "reviews", "mount": str(tmp_path)}
    kubeflow.config(data__input_base=str(folder), kubeflow__volume=volume)
    return folder


def test_unchanged_input_is_a_cache_hit_and_changed_input_is_not(kubeflow, reviews):
    def key(*parameters):
        assert kubeflow(*parameters, cache=True) == 0
        task = sent_tasks(kubeflow)["ReviewExampleGen"]
        assert task["cachingOptions"] == {"enableCache": True}
        constant = task["inputs"]["parameters"]["options"]["runtimeValue"]["constant"]
        # Kubernetes would replace two dollars by one.
        assert "$" not in constant
        options = json.loads(constant)
        assert (options["patterns"], options["max_examples"]) == ({"all": "$$.csv"}, {})
        return options["input_fingerprint"]

    first = key()
    assert key() == first
    (reviews / "reviews.csv").write_text("label,text\n2,bad\n2,good\n")
    second = key()
    (reviews / "more.csv").write_text("label,text\n2,good\n")
    elsewhere = reviews.with_name("elsewhere")
    elsewhere.mkdir()
    (elsewhere / "reviews.csv").write_text("label,text\n1,worse\n")
    assert len({first, second, key(), key(f"input_base={elsewhere}")}) == 4
    run = kubeflow.server.find_requests("POST", "/runs")[-1]
    assert run.body["pipeline_spec"]["platform_spec"] == PLATFORM


def test_input_that_only_the_pods_can_access_is_read_again(kubeflow, reviews, caplog):
    elsewhere = f"{reviews}/in-the-pods"
    assert kubeflow(cache=True, data__input_base=elsewhere) == 0
    assert cached_tasks(kubeflow) == ["Trainer"]
    assert "the run reads it again: " in caplog.text and elsewhere in caplog.text


def test_the_run_has_the_settings_and_the_parameters_and_no_cache(kubeflow):
    assert kubeflow("epochs=3", "min_accuracy=0.5", cache=False) == 0
    (run,) = kubeflow.server.find_requests("POST", "/runs")
    sent = {name: value for name, value in run.body.items() if name != "pipeline_spec"}
    assert sent == {
        "display_name": kubeflow.lines[0].removeprefix("submitted "),
        "experiment_id": "e-1",
        "runtime_config": {
            "parameters": {"epochs": 3, "min_accuracy": 0.5},
            "pipeline_root": "gs://bucket/root",
        },
        "service_account": "ksa",
    }
    assert kubeflow.lines[1] == f"{kubeflow.server.url}/#/runs/details/r-1"
    assert cached_tasks(kubeflow) == []


def test_two_first_submissions_at_once_share_the_experiment(kubeflow):
    kubeflow.server.experiments = [{"experiment_id": "e-of-the-other"}]
    kubeflow.server.fail("GET", "experiments", 200, {})
    exists = "Failed to create a new experiment. The name amazon-reviews already exists."
    kubeflow.server.fail("POST", "experiments", 409, {"code": 6, "message": exists})
    assert kubeflow() == 0
    (run,) = kubeflow.server.find_requests("POST", "/runs")
    assert run.body["experiment_id"] == "e-of-the-other"


def test_kubeflow_with_users_gets_namespace_and_token(kubeflow, monkeypatch, tmp_path):
    kubeflow.server.multi_user = True
    token = tmp_path / "token"
    token.write_text("s3cret")
    monkeypatch.setenv("KF_PIPELINES_SA_TOKEN_PATH", str(token))
    monkeypatch.setenv("KF_PIPELINES_UI_ENDPOINT", "https://kubeflow.example/pipeline/")
    assert kubeflow() == 0
    for request in kubeflow.server.requests:
        assert request.headers["Authorization"] == "Bearer s3cret"
    assert kubeflow.server.find_requests("POST", "/experiments")[0].body["namespace"] == "team-a"
    assert kubeflow.lines[1] == "https://kubeflow.example/pipeline/#/runs/details/r-1"
    token.unlink()
    with pytest.raises(ConfigError, match=f"KF_PIPELINES_SA_TOKEN_PATH: no file '{token}'"):
        kubeflow()


@pytest.mark.parametrize(
    "content",
    [
        b"s3cret\nsecond\n",
        b"s3cret\r\nsecond",
        b"s3cret\xe9",
        "s3cret\u00e9".encode(),
        b"s3\x00",
        b"",
    ],
)
def test_a_file_that_is_no_token_is_named_without_its_content(
    kubeflow, monkeypatch, tmp_path, content
):
    token = tmp_path / "token"
    token.write_bytes(content)
    monkeypatch.setenv("KF_PIPELINES_SA_TOKEN_PATH", str(token))
    message = f"KF_PIPELINES_SA_TOKEN_PATH: {token} is not one line of printable ASCII characters;"
    with pytest.raises(ConfigError, match=message) as error:
        kubeflow()
    assert "s3" not in str(error.value)
    assert kubeflow.server.requests == []


def test_a_token_that_the_server_refuses_is_named_as_that(kubeflow, monkeypatch, tmp_path):
    token = tmp_path / "token"
    token.write_text("s3cret\n")
    monkeypatch.setenv("KF_PIPELINES_SA_TOKEN_PATH", str(token))
    kubeflow.server.fail("GET", "experiments", 401, "invalid bearer token")
    message = rf"TOKEN_PATH: http://\S+ refuses the token in {token} \(401 .*\); create a new one,"
    with pytest.raises(ConfigError, match=message) as error:
        kubeflow()
    assert "s3cret" not in str(error.value)


def test_a_token_that_cannot_be_read_is_one_line(kubeflow, monkeypatch, tmp_path):
    token = tmp_path / "token"
    token.write_text("s3cret\n")
    monkeypatch.setenv("KF_PIPELINES_SA_TOKEN_PATH", str(token))
    denied = PermissionError(13, "Permission denied")
    monkeypatch.setattr(kubeflow_api.Path, "read_text", Mock(side_effect=denied))
    with pytest.raises(ConfigError, match=f"{token} cannot be read: Permission denied; set the"):
        kubeflow_api.connect(kubeflow.config())


def kfp_task(name, state, error=None):
    task = {"run_id": "r-1", "task_id": name, "display_name": name, "state": state}
    return {**task, "error": {"code": 13, "message": error}} if error else task


def test_kubeflow_names_what_failed(kubeflow):
    tasks = [
        kfp_task("amazon-reviews-x7k2p", "FAILED"),
        kfp_task("root", "FAILED"),
        kfp_task("ReviewExampleGen-driver", "SUCCEEDED"),
        kfp_task("ReviewExampleGen", "FAILED", "OOMKilled\n(exit code 137)"),
        kfp_task("executor", "FAILED"),
        kfp_task("Trainer-driver", "FAILED"),
    ]
    kubeflow.server.states = [{"state": "FAILED", "run_details": {"task_details": tasks}}]
    assert kubeflow(wait=True) == 1
    assert kubeflow.lines[-3:] == [
        "ReviewExampleGen failed: OOMKilled (exit code 137)",
        "Trainer (its driver) failed: no error message from the cluster",
        "logs: kubectl get pods -n team-a -l pipeline/runid=r-1 --field-selector="
        "status.phase=Failed -o name | xargs -I POD kubectl logs -n team-a POD -c main --tail=100",
    ]
    # A run that fails before any task.
    kubeflow.server.states = [{"state": "FAILED", "error": {"code": 13, "message": "no quota"}}]
    assert kubeflow(wait=True) == 1
    assert kubeflow.lines[-2].endswith(" failed: no quota")


def test_a_run_that_is_cancelled_is_not_called_failed(kubeflow):
    tasks = [kfp_task("ReviewExampleGen", "SUCCEEDED"), kfp_task("Trainer", "FAILED")]
    history = [{"state": each} for each in ("RUNNING", "CANCELING", "FAILED")]
    details = {"run_details": {"task_details": tasks}, "state_history": history}
    kubeflow.server.states = [{"state": "FAILED", **details}]
    assert kubeflow(wait=True) == 1
    assert re.fullmatch(r"amazon-reviews-\S+ was cancelled", kubeflow.lines[-2])
    assert not any("failed: " in line for line in kubeflow.lines)


def test_a_run_that_is_deleted_does_not_continue(kubeflow):
    message = "Failed to get a run: ResourceNotFoundError: Run r-1 not found"
    kubeflow.server.fail("GET", "/runs/r-1", 404, {"code": 5, "message": message})
    assert kubeflow(wait=True) == 1
    assert re.fullmatch(r"amazon-reviews-\S+ was deleted", kubeflow.lines[-1])
    # The port-forward of another server.
    kubeflow.server.fail("GET", "/runs/r-1", 404, "no page /runs/r-1")
    assert kubeflow(wait=True) == 1
    assert kubeflow.lines[-1].startswith("the status cannot be read (404 no page /runs/r-1); the")


def test_an_unreachable_endpoint(kubeflow, monkeypatch):
    # An endpoint on loopback is not requested from a proxy.
    monkeypatch.setenv("http_proxy", "http://localhost:1")
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
    message = rf"kubeflow.endpoint: {url} is unreachable \(.*refused\); .*port-forward -n kubeflo"
    with pytest.raises(ConfigError, match=message) as caught:
        kubeflow(kubeflow__endpoint=url)
    assert not re.search("object at 0x|proxy", str(caught.value))


@pytest.mark.parametrize("host", ["a..b", f"{'a' * 64}.example", "*.example", "[::1"])
def test_an_endpoint_that_names_no_host(kubeflow, host):
    message = f"kubeflow.endpoint: http://{host} is not the URL of a host ("
    with pytest.raises(ConfigError, match=re.escape(message)) as caught:
        kubeflow(kubeflow__endpoint=f"http://{host}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("method", "part", "body", "field"),
    [
        ("POST", "experiments", {}, "experiment_id"),
        ("GET", "experiments", {"experiments": [{}]}, "experiment_id"),
        ("POST", "/runs", {}, "run_id"),
        ("POST", "recurringruns", {}, "recurring_run_id"),
        (
            "GET",
            "recurringruns",
            {"recurringRuns": [{"display_name": "amazon-reviews"}]},
            "recurring_run_id",
        ),
    ],
)
def test_another_server_that_answers_with_json_is_named(kubeflow, method, part, body, field):
    kubeflow.server.fail(method, part, 200, body)
    message = rf"endpoint: \S+ is not the Kubeflow Pipelines API, .*no field {field}\);"
    with pytest.raises(ConfigError, match=message):
        kubeflow.schedule() if part == "recurringruns" else kubeflow()


def serve(request, tls):
    """Start a server on loopback that answers no request; return its port."""
    listener = socket.create_server(("127.0.0.1", 0))

    def answer():
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection, contextlib.suppress(OSError):
                if tls:
                    tls.wrap_socket(connection, server_side=True).close()
                else:
                    connection.recv(65536)
                    connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    thread = threading.Thread(target=answer)
    thread.start()

    def stop():
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()

    request.addfinalizer(stop)
    return listener.getsockname()[1]


def self_signed(folder):
    """Return the TLS context of a server whose certificate no authority has signed."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.timezone.utc)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    pem, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    secret = key.private_bytes(pem, form, serialization.NoEncryption())
    file = folder / "server.pem"
    file.write_bytes(secret + certificate.public_bytes(pem))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context


def test_a_certificate_that_cannot_be_verified_is_named(kubeflow, request, tmp_path):
    url = f"https://127.0.0.1:{serve(request, self_signed(tmp_path))}"
    message = rf"{url} has a certificate that cannot be verified \(.*self.signed.*\); .*port-for"
    with pytest.raises(ConfigError, match=message):
        kubeflow(kubeflow__endpoint=url)


def test_https_to_a_server_without_tls_is_named(kubeflow, request):
    url = f"https://127.0.0.1:{serve(request, None)}"
    message = rf"{url} does not support TLS \(.*\); set a URL that begins with http://"
    with pytest.raises(ConfigError, match=message):
        kubeflow(kubeflow__endpoint=url)


DENIED = "Failed to authorize: PermissionDenied: User 'x' is not authorized with reason: (request"


@pytest.mark.parametrize(
    ("part", "status", "body", "message"),
    [
        ("healthz", 401, "Jwt is missing", r"endpoint: .* authentication \(401 Jwt is missing\);"),
        ("experiments", 403, {"code": 7, "error": DENIED}, r"namespace: .*'team-a' \(403 Failed"),
        ("healthz", 404, LOGIN_PAGE, r"endpoint: .* is not the Kubeflow Pipelines API.*\(404 Not"),
    ],
)
def test_kubeflow_denies_access(kubeflow, part, status, body, message):
    kubeflow.server.fail("GET", part, status, body)
    with pytest.raises(ConfigError, match=f"^kubeflow.{message}") as caught:
        kubeflow()
    assert "\n" not in str(caught.value)
    assert not kubeflow.server.find_requests("POST")


@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [
        (500, {"code": 13, "message": "no database"}, "500 no database"),
        (502, "<html>", "502 Bad Gateway"),
        (503, "no healthy", "503 no healthy"),
        (200, {"apiServerReady": False}, "503 the UI responds, but its API server is not ready"),
    ],
)
def test_a_server_that_does_not_work_is_not_called_unreachable(kubeflow, status, body, reason):
    kubeflow.server.fail("GET", "healthz", status, body)
    message = f"^kubeflow.endpoint: {kubeflow.server.url} responds with a failure of the server "
    with pytest.raises(ServerError, match=rf"{message}\({reason}\); retry later$"):
        kubeflow()


def test_kubeflow_refuses_the_pipeline(kubeflow):
    kubeflow.server.fail("POST", "/runs", 400, {"code": 3, "message": "no resolver"})
    with pytest.raises(ServerError, match="refused the request: 400 no resolver"):
        kubeflow()


@pytest.mark.parametrize("status", [0, 500, 504])
def test_kubeflow_is_never_sent_a_run_twice(kubeflow, status):
    kubeflow.server.fail("POST", "/runs", status, "upstream request timeout", times=5)
    with pytest.raises(ServerError) as caught:
        kubeflow()
    (run,) = kubeflow.server.find_requests("POST", "/runs")
    assert f"whether {run.body['display_name']} was submitted, check" in str(caught.value)


@pytest.mark.parametrize(("method", "part"), [("GET", "healthz"), ("POST", "/runs")])
def test_a_rate_limit_is_waited_for_as_long_as_the_server_requests(
    kubeflow, monkeypatch, method, part
):
    pauses = []
    monkeypatch.setattr(kubeflow_api.time, "sleep", pauses.append)
    kubeflow.server.fail(method, part, 429, "slow down", headers={"Retry-After": "7"})
    kubeflow.server.fail(method, part, 429, "slow down", times=2)
    assert kubeflow() == 0
    assert pauses == [7.0, 2.0, 4.0]


@pytest.mark.parametrize(("method", "part"), [("GET", "healthz"), ("POST", "/runs")])
def test_a_rate_limit_that_does_not_end_is_named(kubeflow, method, part):
    kubeflow.server.fail(method, part, 429, "slow down", headers={"Retry-After": "3600"}, times=9)
    with pytest.raises(
        ServerError, match=r"endpoint: \S+ limits the rate of .*429 slow down"
    ) as no:
        kubeflow()
    # The run was refused, so this is certain.
    assert "nothing was submitted" in str(no.value)
    assert len(kubeflow.server.find_requests(method, part)) == 1
