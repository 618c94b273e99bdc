"""Submitting to Kubeflow Pipelines: kfp's own client against a real server."""

import json
import socket

import pytest
import yaml

from core.errors import ConfigError
from tests.platforms.kubeflow.kfp_server import LOGIN_PAGE
from tests.platforms.submission import PLATFORM, kfp_state, kfp_task


@pytest.mark.parametrize(("cache", "cached"), [(True, [False, True]), (False, [False, False])])
def test_kubeflow_never_caches_more_than_was_compiled(kubeflow, cache, cached):
    kubeflow(cache=cache)
    (run,) = kubeflow.server.find_requests("POST", "/runs")
    tasks = run.body["pipeline_spec"]["pipeline_spec"]["root"]["dag"]["tasks"]
    found = [tasks[name]["cachingOptions"].get("enableCache", False) for name in sorted(tasks)]
    assert found == cached


def sent_tasks(kubeflow):
    run = kubeflow.server.find_requests("POST", "/runs")[-1]
    return run.body["pipeline_spec"]["pipeline_spec"]["root"]["dag"]["tasks"]


@pytest.fixture
def reviews(kubeflow, tmp_path):
    """A folder of raw files that this machine can list, and that the compiled pipeline reads."""
    folder = tmp_path / "raw"
    folder.mkdir()
    (folder / "reviews.csv").write_text("label,text\n1,bad\n")
    documents = list(yaml.safe_load_all(kubeflow.file.read_text()))
    task = documents[0]["root"]["dag"]["tasks"]["ReviewExampleGen"]
    options = {"runtimeValue": {"constant": '{"max_examples": {}}'}}
    task["inputs"] = {"parameters": {"options": options}}
    added = ("compiled_settings", "input_base", "epochs", "strategy", "min_accuracy")
    task["inputs"]["parameters"] |= {name: {"componentInputParameter": name} for name in added}
    documents[0]["root"]["inputDefinitions"]["parameters"]["input_base"] = {
        "parameterType": "STRING",
        "defaultValue": str(folder),
    }
    kubeflow.file.write_text(yaml.safe_dump_all(documents))
    return folder


def test_unchanged_input_is_a_cache_hit_and_changed_input_is_not(kubeflow, reviews):
    def key():
        assert kubeflow() == 0
        task = sent_tasks(kubeflow)["ReviewExampleGen"]
        assert task["cachingOptions"] == {"enableCache": True}
        options = json.loads(task["inputs"]["parameters"]["options"]["runtimeValue"]["constant"])
        assert options["max_examples"] == {}
        # The check of the parameters is not a part of the cache key.
        assert set(task["inputs"]["parameters"]) == {"options", "input_base"}
        return options["input_fingerprint"]

    compiled = kubeflow.file.read_text()
    first = key()
    assert key() == first
    (reviews / "reviews.csv").write_text("label,text\n2,bad\n2,good\n")
    second = key()
    (reviews / "more.csv").write_text("label,text\n2,good\n")
    assert len({first, second, key()}) == 3
    # The compiled file itself stays unchanged, because a run from the UI compares no files.
    assert kubeflow.file.read_text() == compiled
    run = kubeflow.server.find_requests("POST", "/runs")[-1]
    assert run.body["pipeline_spec"]["platform_spec"] == PLATFORM


def test_input_that_only_the_pods_can_access_is_read_again(kubeflow, reviews, caplog):
    compiled = kubeflow.file.read_text()
    kubeflow.file.write_text(compiled.replace(str(reviews), "/only/in/the/pods"))
    assert kubeflow() == 0
    assert sent_tasks(kubeflow)["ReviewExampleGen"]["cachingOptions"] in (
        {},
        {"enableCache": False},
    )
    assert "the run reads it again: the folder /only/in/the/pods does not exist" in caplog.text


def test_the_cache_can_be_switched_off_for_the_input_too(kubeflow, reviews):
    assert kubeflow(cache=False) == 0
    assert not sent_tasks(kubeflow)["ReviewExampleGen"]["cachingOptions"].get("enableCache", False)


def test_kubeflow_with_users_gets_namespace_and_token(kubeflow, monkeypatch, tmp_path):
    kubeflow.server.multi_user = True
    token = tmp_path / "token"
    token.write_text("s3cret")
    monkeypatch.setenv("KF_PIPELINES_SA_TOKEN_PATH", str(token))
    monkeypatch.setenv("KF_PIPELINES_UI_ENDPOINT", "https://kubeflow.example/pipeline/")
    assert kubeflow() == 0
    for request in kubeflow.server.requests:
        assert request.headers["authorization"] == "Bearer s3cret"
    assert kubeflow.server.find_requests("POST", "/experiments")[0].body["namespace"] == "team-a"
    assert kubeflow.lines[1] == "https://kubeflow.example/pipeline/#/runs/details/r-1"


def test_a_token_file_that_is_missing(kubeflow, monkeypatch):
    monkeypatch.setenv("KF_PIPELINES_SA_TOKEN_PATH", "/nowhere/token")
    with pytest.raises(ConfigError, match="KF_PIPELINES_SA_TOKEN_PATH: no file '/nowhere/token'"):
        kubeflow()


def test_kubeflow_names_what_failed(kubeflow):
    kubeflow.server.states = [
        kfp_state(
            "FAILED",
            kfp_task("amazon-reviews-x7k2p", "FAILED"),
            kfp_task("root", "FAILED"),
            kfp_task("ReviewExampleGen-driver", "SUCCEEDED"),
            kfp_task("ReviewExampleGen", "FAILED", "OOMKilled\n(exit code 137)"),
            kfp_task("executor", "FAILED"),
            kfp_task("Trainer-driver", "FAILED"),
        )
    ]
    assert kubeflow(wait=True) == 1
    assert kubeflow.lines[-3:] == [
        "ReviewExampleGen failed: OOMKilled (exit code 137)",
        "Trainer (its driver) failed: no error message from the cluster",
        "logs: kubectl get pods -n team-a -l pipeline/runid=r-1 --field-selector="
        "status.phase=Failed -o name | xargs -I POD kubectl logs -n team-a POD -c main --tail=100",
    ]


def test_a_run_that_fails_before_any_task(kubeflow):
    kubeflow.server.states = [{"state": "FAILED", "error": {"code": 13, "message": "no quota"}}]
    assert kubeflow(wait=True) == 1
    assert kubeflow.lines[-2].endswith(" failed: no quota")


def test_a_cancelled_run_whose_history_does_not_show_it(kubeflow):
    workflow = json.dumps({"spec": {"activeDeadlineSeconds": 0}})
    runtime = {"workflow_manifest": workflow}
    kubeflow.server.states = [{"state": "FAILED", "pipeline_runtime": runtime}]
    assert kubeflow(wait=True) == 1
    assert kubeflow.lines[-2].endswith(" was cancelled")


def test_an_unreachable_endpoint(kubeflow, caplog):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
    message = rf"kubeflow.endpoint: {url} is unreachable \(.*refused\)\. .*port-forward -n kubeflo"
    with pytest.raises(ConfigError, match=message) as caught:
        kubeflow(kubeflow__endpoint=url)
    assert "object at 0x" not in str(caught.value)
    assert not caplog.records


DENIED = "Failed to authorize: PermissionDenied: User 'x' is not authorized with reason: (request"
UNKNOWN = "Internal error: Unauthenticated: Request header error: there is no user identity header"


@pytest.mark.parametrize(
    ("part", "status", "body", "message"),
    [
        (
            "healthz",
            401,
            "Jwt is missing",
            r"endpoint: .* authentication \(401 Jwt is missing\)\. S",
        ),
        ("experiments", 500, {"code": 13, "message": UNKNOWN}, "endpoint: .* requires authentic"),
        ("healthz", 403, "RBAC: access denied", r"namespace: no permission .* \(403 RBAC: access"),
        ("experiments", 403, {"code": 7, "error": DENIED}, r"namespace: .*'team-a' \(403 Failed"),
        ("healthz", 404, LOGIN_PAGE, r"endpoint: .* is not the Kubeflow Pipelines API.*\(404 Not"),
        ("healthz", 200, LOGIN_PAGE, r"endpoint: .* requires a login \(404 a web page"),
    ],
)
def test_kubeflow_denies_access(kubeflow, part, status, body, message):
    kubeflow.server.fail("GET", part, status, body)
    with pytest.raises(ConfigError, match=f"^kubeflow.{message}") as caught:
        kubeflow()
    assert "\n" not in str(caught.value)
    assert not kubeflow.server.find_requests("POST")


def test_kubeflow_responds_after_retries(kubeflow):
    kubeflow.server.fail("GET", "healthz", 503, "no healthy upstream", times=2)
    assert kubeflow() == 0


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (503, "no healthy upstream", "503 no healthy upstream"),
        (200, {"apiServerReady": False}, "503 the UI responds, but its API server is not ready"),
    ],
)
def test_kubeflow_is_not_up(kubeflow, status, body, message):
    kubeflow.server.fail("GET", "healthz", status, body, times=10)
    assert kubeflow() == 1
    assert kubeflow.lines == [f"kubeflow.endpoint: {kubeflow.server.url}: {message}"]


def test_kubeflow_refuses_the_pipeline(kubeflow):
    reason = "Failed to create a new run: InvalidInputError: resolver executors not implemented"
    kubeflow.server.fail("POST", "/runs", 400, {"code": 3, "message": reason})
    assert kubeflow() == 1
    assert kubeflow.lines == [f"Kubeflow Pipelines refused the run: 400 {reason}"]


@pytest.mark.parametrize("status", [0, 504])
def test_kubeflow_is_never_sent_a_run_twice(kubeflow, status):
    kubeflow.server.fail("POST", "/runs", status, "upstream request timeout", times=5)
    assert kubeflow() == 1
    (run,) = kubeflow.server.find_requests("POST", "/runs")
    (line,) = kubeflow.lines
    assert f"whether {run.body['display_name']} was submitted, check" in line
