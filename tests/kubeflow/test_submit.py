"""Submitting and following a run: kfp's own client and our REST client against real servers."""

import json
import os
import signal
import socket

import google.auth
import pytest
import requests
import yaml
from google.auth.credentials import AnonymousCredentials
from google.auth.exceptions import DefaultCredentialsError, RefreshError
from google.auth.transport.requests import AuthorizedSession

from kubeflow import kubeflow_client, vertex_client
from kubeflow.submit import read_parameters, submit
from pipeline import cli
from pipeline.config import PipelineConfig
from pipeline.settings_file import ConfigError
from preprocessing.errors import InputError
from tests.kubeflow.kfp_server import LOGIN_PAGE, KfpServer, VertexServer, serving

SPEC = {
    "schemaVersion": "2.1.0",
    "sdkVersion": "tfx-1.21.0",
    "pipelineInfo": {"name": "amazon-reviews"},
    "components": {"ReviewExampleGen": {"executorLabel": "e"}, "Trainer": {"executorLabel": "e"}},
    "deploymentSpec": {"executors": {"e": {"container": {"image": "i", "command": ["c"]}}}},
    "root": {
        "dag": {
            "tasks": {
                name: {
                    "taskInfo": {"name": name},
                    "componentRef": {"name": name},
                    "cachingOptions": {"enableCache": cached},
                }
                for name, cached in (("ReviewExampleGen", False), ("Trainer", True))
            }
        },
        "inputDefinitions": {
            "parameters": {
                "epochs": {"parameterType": "NUMBER_INTEGER", "defaultValue": 2},
                "min_accuracy": {"parameterType": "NUMBER_DOUBLE", "defaultValue": 0.8},
                "strategy": {"parameterType": "STRING", "defaultValue": "auto"},
            }
        },
    },
}
PLATFORM = {"platforms": {"kubernetes": {"deploymentSpec": {"executors": {"e": {}}}}}}
JOB = {
    "displayName": "amazon-reviews",
    "labels": {"tfx_runner": "kubeflow_v2"},
    "pipelineSpec": SPEC,
    "runtimeConfig": {"gcsOutputDirectory": "gs://elsewhere/root"},
}


class Submission:
    """One `amazon-reviews submit`: what it takes, what it said, its exit code."""

    def __init__(self, target, server, folder):
        self.target, self.server = target, server
        self.lines = []
        self.settings = {
            "cluster": {"image": "registry/amazon-reviews:1"},
            "paths": {"root": "gs://bucket/root"},
            "data": {"input_base": "gs://bucket/data"},
            "kubeflow": {"endpoint": server.url, "namespace": "team-a", "service_account": "ksa"},
            "vertex": {"project": "my-project", "region": "us-central1"},
        }
        self.file = folder / {"kubeflow": "reviews.yaml", "vertex": "reviews.json"}[target]
        text = yaml.safe_dump_all([SPEC, PLATFORM]) if target == "kubeflow" else json.dumps(JOB)
        self.file.write_text(text)

    def __call__(self, *parameters, wait=False, target=None, say=None, patience=60.0, **changes):
        for key, value in changes.items():
            section, name = key.split("__") if "__" in key else (None, key)
            (self.settings[section] if section else self.settings)[name] = value
        return submit(
            PipelineConfig.model_validate(self.settings),
            target or self.target,
            self.file,
            read_parameters(parameters),
            wait,
            say or self.lines.append,
            poll_seconds=0.01,
            patience_seconds=patience,
        )

    @property
    def states(self):
        """The lines about states, without the time."""
        return [line[10:] for line in self.lines if line[2:3] == ":" and line[5:6] == ":"]


@pytest.fixture(autouse=True)
def at_once(monkeypatch, tmp_path):
    """Nobody waits between two tries; kfp's settings are nobody's."""
    monkeypatch.setattr(kubeflow_client, "PAUSES", (0.01, 0.01, 0.01))
    monkeypatch.setattr(vertex_client, "PAUSES", (0.01, 0.01, 0.01))
    monkeypatch.setattr("kfp.Client._LOCAL_KFP_CONTEXT", str(tmp_path / "context.json"))
    for name in ("KF_PIPELINES_SA_TOKEN_PATH", "KF_PIPELINES_UI_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def kubeflow(tmp_path):
    with serving(KfpServer([{"state": "SUCCEEDED"}])) as server:
        yield Submission("kubeflow", server, tmp_path)


@pytest.fixture
def vertex(tmp_path, monkeypatch):
    with serving(VertexServer([{"state": "PIPELINE_STATE_SUCCEEDED"}])) as server:

        def connect(config):
            return vertex_client.Api(server.url + "/v1", AuthorizedSession(AnonymousCredentials()))

        monkeypatch.setattr(vertex_client, "connect", connect)
        yield Submission("vertex", server, tmp_path)


def kfp_task(name, state, error=None):
    task = {"run_id": "r-1", "task_id": name, "display_name": name, "state": state}
    return {**task, "error": {"code": 13, "message": error}} if error else task


def kfp_state(state, *tasks):
    return {"state": state, "run_details": {"task_details": list(tasks)}}


def vertex_state(state, *tasks, error=None):
    answer = {"state": f"PIPELINE_STATE_{state}", "jobDetail": {"taskDetails": list(tasks)}}
    return {**answer, "error": {"code": 9, "message": error}} if error else answer


# Settings, file and parameters: wrong ones are told before anything is sent.


def test_kubeflow_needs_to_know_where(kubeflow):
    for wrong, message in ((None, "kubeflow.endpoint: not set"), ("host:8080", "http:// or https")):
        with pytest.raises(ConfigError, match=message):
            kubeflow(kubeflow__endpoint=wrong)
    assert not kubeflow.server.requests


def test_what_is_wrong_is_told_before_compiling(kubeflow, tmp_path, monkeypatch):
    monkeypatch.setattr(cli, "_compile", lambda *arguments: pytest.fail("compiled"))
    monkeypatch.setenv("PIPELINE_CONFIG", "")  # the command sets it
    config = tmp_path / "config.yaml"
    kubeflow.settings["kubeflow"]["endpoint"] = None
    config.write_text(yaml.safe_dump(kubeflow.settings))
    with pytest.raises(ConfigError, match=r"kubeflow.endpoint: not set"):
        cli.submit("kubeflow", config=str(config))
    with pytest.raises(ConfigError, match="parameter 'epochs': not NAME=VALUE"):
        cli.submit("kubeflow", parameter=["epochs"], config=str(config))


@pytest.mark.parametrize("key", ["project", "region"])
def test_vertex_needs_project_and_region(vertex, key):
    with pytest.raises(ConfigError, match=f"vertex.{key}: not set"):
        vertex(**{f"vertex__{key}": None})
    assert not vertex.server.requests


def test_vertex_needs_credentials(tmp_path, monkeypatch):
    def no_credentials(scopes):
        raise DefaultCredentialsError("none")

    monkeypatch.setattr(google.auth, "default", no_credentials)
    submission = Submission("vertex", VertexServer([]), tmp_path)
    with pytest.raises(ConfigError, match=r"vertex.project: my-project needs .*gcloud auth appl"):
        submission()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("epoch=3", "parameter epoch: the pipeline has no such parameter; known are epochs"),
        ("epochs=2.5", "parameter epochs: an integer, not '2.5'; known are epochs"),
        ("min_accuracy=high", "parameter min_accuracy: a number, not 'high'"),
        ("min_accuracy=nan", "parameter min_accuracy: a number, not 'nan'"),
        ("epochs", "parameter 'epochs': not NAME=VALUE"),
    ],
)
def test_wrong_parameters(kubeflow, given, message):
    with pytest.raises(ConfigError, match=message):
        kubeflow(given)
    assert not kubeflow.server.requests


def test_a_parameter_without_default_needs_a_value(kubeflow):
    spec = json.loads(json.dumps(SPEC))
    del spec["root"]["inputDefinitions"]["parameters"]["epochs"]["defaultValue"]
    kubeflow.file.write_text(yaml.safe_dump(spec))
    with pytest.raises(ConfigError, match="parameter epochs: has no default"):
        kubeflow()
    assert kubeflow("epochs=1") == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "No such file"),
        ("a: [", "cannot be parsed"),
        ("", "cannot be parsed"),
        ("- 1", "has no `root`"),
        (json.dumps(JOB), "compiled for Vertex AI; make one with .* --target kubeflow"),
    ],
)
def test_what_is_no_package(kubeflow, text, message):
    if text is None:
        kubeflow.file.unlink()
    else:
        kubeflow.file.write_text(text)
    with pytest.raises(InputError, match=message):
        kubeflow()
    assert not kubeflow.server.requests


def test_a_package_for_the_other_target(vertex):
    vertex.file.write_text(json.dumps(SPEC))
    with pytest.raises(InputError, match="compiled for Kubeflow"):
        vertex()


# Kubeflow Pipelines.


def test_kubeflow_is_given_the_run(kubeflow, capsys):
    assert kubeflow("epochs=3", "min_accuracy=1", "strategy=mirrored") == 0
    (run,) = kubeflow.server.asked("POST", "/runs")
    assert run.body["runtime_config"] == {
        "parameters": {"epochs": 3, "min_accuracy": 1.0, "strategy": "mirrored"},
        "pipeline_root": "gs://bucket/root",
    }
    assert run.body["service_account"] == "ksa"
    assert run.body["experiment_id"] == "e-1"
    assert run.body["display_name"].startswith("amazon-reviews-20")
    assert run.body["pipeline_spec"]["platform_spec"] == PLATFORM
    assert kubeflow.lines == [
        f"submitted {run.body['display_name']}",
        f"{kubeflow.server.url}/#/runs/details/r-1",
    ]
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(("cache", "cached"), [(True, [False, True]), (False, [False, False])])
def test_kubeflow_never_caches_more_than_was_compiled(kubeflow, cache, cached):
    kubeflow(cache=cache)
    (run,) = kubeflow.server.asked("POST", "/runs")
    tasks = run.body["pipeline_spec"]["pipeline_spec"]["root"]["dag"]["tasks"]
    found = [tasks[name]["cachingOptions"].get("enableCache", False) for name in sorted(tasks)]
    assert found == cached


def test_kubeflow_with_users_gets_namespace_and_token(kubeflow, monkeypatch, tmp_path):
    kubeflow.server.multi_user = True
    token = tmp_path / "token"
    token.write_text("s3cret")
    monkeypatch.setenv("KF_PIPELINES_SA_TOKEN_PATH", str(token))
    monkeypatch.setenv("KF_PIPELINES_UI_ENDPOINT", "https://kubeflow.example/pipeline/")
    assert kubeflow() == 0
    for request in kubeflow.server.requests:
        assert request.headers["authorization"] == "Bearer s3cret"
    assert kubeflow.server.asked("POST", "/experiments")[0].body["namespace"] == "team-a"
    assert kubeflow.lines[1] == "https://kubeflow.example/pipeline/#/runs/details/r-1"


def test_a_token_file_that_is_missing(kubeflow, monkeypatch):
    monkeypatch.setenv("KF_PIPELINES_SA_TOKEN_PATH", "/nowhere/token")
    with pytest.raises(ConfigError, match="KF_PIPELINES_SA_TOKEN_PATH: no file '/nowhere/token'"):
        kubeflow()


def test_kubeflow_is_followed_to_success(kubeflow):
    gen, trainer = "ReviewExampleGen", "Trainer"
    kubeflow.server.states = [
        {"state": "PENDING"},
        kfp_state("PENDING", kfp_task(gen, "RUNTIME_STATE_UNSPECIFIED")),
        kfp_state("RUNNING", kfp_task("root-driver", "SUCCEEDED"), kfp_task(gen, "RUNNING")),
        kfp_state("RUNNING", kfp_task("executor", "RUNNING"), kfp_task(gen, "RUNNING")),
        kfp_state("RUNNING", kfp_task(gen, "SUCCEEDED"), kfp_task(trainer, "RUNNING")),
        kfp_state("SUCCEEDED", kfp_task(gen, "SUCCEEDED"), kfp_task(trainer, "SUCCEEDED")),
    ]
    assert kubeflow(wait=True) == 0
    name = kubeflow.lines[0].removeprefix("submitted ")
    assert kubeflow.states == [
        f"{name}: pending",
        "ReviewExampleGen: running",
        f"{name}: running",
        "ReviewExampleGen: succeeded",
        "Trainer: running",
        "Trainer: succeeded",
        f"{name}: succeeded",
    ]
    assert kubeflow.lines[-1] == f"{name} succeeded after 0 min 0 s"


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
        "Trainer (its driver) failed: the cluster tells no reason",
        "logs: kubectl logs -n team-a -l pipeline/runid=r-1 --all-containers --prefix --tail=50",
    ]


def test_a_run_that_fails_before_any_task(kubeflow):
    kubeflow.server.states = [{"state": "FAILED", "error": {"code": 13, "message": "no quota"}}]
    assert kubeflow(wait=True) == 1
    assert kubeflow.lines[-2].endswith(" failed: no quota")


def test_a_cancelled_run(kubeflow):
    kubeflow.server.states = [{"state": "CANCELING"}, {"state": "CANCELED"}]
    assert kubeflow(wait=True) == 1
    assert kubeflow.lines[-2].endswith(" was cancelled")


def test_nobody_at_the_endpoint(kubeflow):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
    message = rf"kubeflow.endpoint: {url} cannot be reached \(.*refused\); .*port-forward -n kubef"
    with pytest.raises(ConfigError, match=message) as caught:
        kubeflow(kubeflow__endpoint=url)
    assert "object at 0x" not in str(caught.value)


DENIED = "Failed to authorize: PermissionDenied: User 'x' is not authorized with reason: (request"
UNKNOWN = "Internal error: Unauthenticated: Request header error: there is no user identity header"


@pytest.mark.parametrize(
    ("part", "status", "body", "message"),
    [
        ("healthz", 401, "Jwt is missing", r"endpoint: .* who asks \(401 Jwt is missing\); name a"),
        ("experiments", 500, {"code": 13, "message": UNKNOWN}, "endpoint: .* wants to know who"),
        ("healthz", 403, "RBAC: access denied", r"namespace: not allowed .* \(403 RBAC: access"),
        ("experiments", 403, {"code": 7, "error": DENIED}, r"namespace: .*'team-a' \(403 Failed"),
        ("healthz", 404, LOGIN_PAGE, r"endpoint: .* is not the Kubeflow Pipelines API.*\(404 Not"),
        ("healthz", 200, LOGIN_PAGE, r"endpoint: .* asks to sign in \(404 a web page"),
    ],
)
def test_kubeflow_does_not_let_us_in(kubeflow, part, status, body, message):
    kubeflow.server.fail("GET", part, status, body)
    with pytest.raises(ConfigError, match=f"^kubeflow.{message}") as caught:
        kubeflow()
    assert "\n" not in str(caught.value)
    assert not kubeflow.server.asked("POST")


def test_kubeflow_comes_back_in_time(kubeflow):
    kubeflow.server.fail("GET", "healthz", 503, "no healthy upstream", times=2)
    assert kubeflow() == 0


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (503, "no healthy upstream", "503 no healthy upstream"),
        (200, {"apiServerReady": False}, "503 the UI answers, the API behind it does not"),
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
    (run,) = kubeflow.server.asked("POST", "/runs")
    (line,) = kubeflow.lines
    assert f"whether {run.body['display_name']} was submitted is not known, look at" in line


# Following, whichever the cluster is.


def test_silence_while_waiting_is_told_once_and_passes(kubeflow):
    kubeflow.server.states = [{"state": "RUNNING"}, {"state": "SUCCEEDED"}]
    kubeflow.server.fail("GET", "/runs/r-1", 502, "bad gateway", times=3)
    kubeflow.server.fail("GET", "/runs/r-1", 0)
    assert kubeflow(wait=True) == 0
    assert [line for line in kubeflow.lines if "no answer" in line] == [
        "no answer (502 bad gateway); still trying"
    ]


def test_silence_for_too_long(kubeflow):
    kubeflow.server.fail("GET", "/runs/r-1", 502, "bad gateway", times=1000)
    assert kubeflow(wait=True, patience=0.1) == 1
    assert kubeflow.lines[-1] == (
        "no answer for too long (502 bad gateway); the run goes on, see and stop it at "
        f"{kubeflow.server.url}/#/runs/details/r-1"
    )


def test_a_token_that_expires_while_waiting(kubeflow):
    kubeflow.server.fail("GET", "/runs/r-1", 401, "Jwt is expired")
    assert kubeflow(wait=True) == 1
    assert kubeflow.lines[-1].startswith("cannot be followed (401 Jwt is expired); the run goes on")


def test_ctrl_c_while_waiting_leaves_the_run_alone(kubeflow):
    kubeflow.server.states = [{"state": "RUNNING"}]
    lines = []

    def say(line):
        lines.append(line)
        if "running" in line:
            signal.raise_signal(signal.SIGINT)

    assert kubeflow(wait=True, say=say) == 130
    assert lines[-1].startswith("stopped waiting; the run goes on, see and stop it at http://127")


def test_ctrl_c_while_submitting_says_what_is_not_known(kubeflow):
    answer = kubeflow.server.answer

    def interrupt(request):
        if request.method == "POST" and request.path.endswith("/runs"):
            os.kill(os.getpid(), signal.SIGINT)
        return answer(request)

    kubeflow.server.answer = interrupt
    assert kubeflow(wait=True) == 130
    (line,) = kubeflow.lines
    assert "was submitted is not known, look for it before another try" in line


# Vertex AI.


def test_vertex_is_given_the_job(vertex):
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
def test_vertex_gets_one_run_however_often_it_is_asked(vertex, status):
    vertex.server.fail("POST", "pipelineJobs", status, "upstream", times=2)
    assert vertex() == 0
    assert len(vertex.server.asked("POST")) == 3
    assert len(vertex.server.jobs) == 1


def test_vertex_that_stays_silent(vertex):
    vertex.server.fail("POST", "pipelineJobs", 503, "upstream", times=10)
    assert vertex() == 1
    (line,) = vertex.lines
    assert "was submitted is not known, look at https://console" in line


OFF = "Vertex AI API has not been used in project 1 before or it is disabled. Enable it by visiting"
NO_ACT_AS = "You do not have permission to act as service_account: runner@my-project."


@pytest.mark.parametrize(
    ("status", "reason", "message"),
    [
        (401, "Request had invalid credentials.", "project: the Google Cloud credentials do not"),
        (403, OFF, "project: the Vertex AI API is off .*`gcloud services enable aiplatform"),
        (403, NO_ACT_AS, "service_account: You do not.*roles/iam.serviceAccountUser on"),
        (403, "Permission 'aiplatform.pipelineJobs.create' denied", "project: .*aiplatform.user"),
        (404, None, "region: us-central1 in my-project is not found"),
    ],
)
def test_vertex_does_not_let_us_in(vertex, status, reason, message):
    body = {"error": {"code": status, "message": reason}} if reason else LOGIN_PAGE
    vertex.server.fail("POST", "pipelineJobs", status, body)
    with pytest.raises(ConfigError, match=f"^vertex.{message}"):
        vertex()


def test_vertex_refuses_the_job(vertex):
    body = {"error": {"code": 400, "message": "Unsupported schema version"}}
    vertex.server.fail("POST", "pipelineJobs", 400, body)
    assert vertex() == 1
    assert vertex.lines == ["Vertex AI refused the run: Unsupported schema version"]


def test_a_region_that_nobody_knows(vertex, monkeypatch):
    def connect(config):
        return vertex_client.Api("http://x-aiplatform.invalid/v1", requests.Session())

    monkeypatch.setattr(vertex_client, "connect", connect)
    with pytest.raises(ConfigError, match=r"vertex.region: http://x-.*; is us-central1 a region"):
        vertex()


def test_expired_credentials(vertex, monkeypatch):
    class Expired(AnonymousCredentials):
        valid = False

        def before_request(self, request, method, url, headers):
            raise RefreshError("Reauthentication is needed.")

    def connect(config):
        return vertex_client.Api(vertex.server.url + "/v1", AuthorizedSession(Expired()))

    monkeypatch.setattr(vertex_client, "connect", connect)
    with pytest.raises(ConfigError, match=r"credentials do not work \(Reauthentication is needed"):
        vertex()
