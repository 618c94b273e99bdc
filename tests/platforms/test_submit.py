"""Checks before a submission, and following a run, on either cluster."""

import json
import os
import signal

import google.auth
import pytest
import yaml
from google.auth.exceptions import DefaultCredentialsError

from cli import submit as command
from core.errors import ConfigError, InputError
from tests.platforms.kubeflow.kfp_server import VertexServer
from tests.platforms.submission import JOB, SPEC, Submission

# Wrong settings, files and parameters are reported before the first request.


def test_kubeflow_requires_an_endpoint(kubeflow):
    for wrong, message in ((None, "kubeflow.endpoint: not set"), ("host:8080", "http:// or https")):
        with pytest.raises(ConfigError, match=message):
            kubeflow(kubeflow__endpoint=wrong)
    assert not kubeflow.server.requests


def test_errors_are_reported_before_compiling(kubeflow, tmp_path, monkeypatch):
    monkeypatch.setattr(command, "compile_to", lambda *arguments: pytest.fail("compiled"))
    config = tmp_path / "config.yaml"
    kubeflow.settings["kubeflow"]["endpoint"] = None
    config.write_text(yaml.safe_dump(kubeflow.settings))
    with pytest.raises(ConfigError, match=r"kubeflow.endpoint: not set"):
        command.submit("kubeflow", config=str(config))
    with pytest.raises(ConfigError, match="--parameter: 'epochs' is not KEY=VALUE"):
        command.submit("kubeflow", parameter=["epochs"], config=str(config))


@pytest.mark.parametrize("key", ["project", "region"])
def test_vertex_requires_project_and_region(vertex, key):
    with pytest.raises(ConfigError, match=f"vertex.{key}: not set"):
        vertex(**{f"vertex__{key}": None})
    assert not vertex.server.requests


def test_vertex_requires_credentials(tmp_path, monkeypatch):
    def no_credentials(scopes):
        raise DefaultCredentialsError("none")

    monkeypatch.setattr(google.auth, "default", no_credentials)
    submission = Submission("vertex", VertexServer([]), tmp_path)
    with pytest.raises(ConfigError, match=r"vertex.project: my-project requires .*gcloud auth a"):
        submission()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("epoch=3", "parameter epoch: the pipeline has no such parameter; known are epochs"),
        ("epochs=2.5", "parameter epochs: must be an integer, not '2.5'; known are"),
        ("min_accuracy=high", "parameter min_accuracy: must be a number, not 'high'"),
        ("min_accuracy=nan", "parameter min_accuracy: must be a number, not 'nan'"),
        ("epochs", "--parameter: 'epochs' is not KEY=VALUE"),
    ],
)
def test_wrong_parameters(kubeflow, given, message):
    with pytest.raises(ConfigError, match=message):
        kubeflow(given)
    assert not kubeflow.server.requests


def test_a_parameter_without_default_requires_a_value(kubeflow):
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
        (json.dumps(JOB), "compiled for Vertex AI, not for kubeflow; create one with"),
    ],
)
def test_a_file_that_is_no_compiled_pipeline(kubeflow, text, message):
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


# Following.


def test_missing_responses_are_reported_once_and_retried(kubeflow):
    kubeflow.server.states = [{"state": "RUNNING"}, {"state": "SUCCEEDED"}]
    kubeflow.server.fail("GET", "/runs/r-1", 502, "bad gateway", times=3)
    kubeflow.server.fail("GET", "/runs/r-1", 0)
    assert kubeflow(wait=True) == 0
    assert [line for line in kubeflow.lines if "no response" in line] == [
        "no response (502 bad gateway); retrying"
    ]


def test_no_response_for_too_long(kubeflow):
    kubeflow.server.fail("GET", "/runs/r-1", 502, "bad gateway", times=1000)
    assert kubeflow(wait=True, patience=0.1) == 1
    assert kubeflow.lines[-1] == (
        "no response for 0.1 s (502 bad gateway); the run continues, see or stop it at "
        f"{kubeflow.server.url}/#/runs/details/r-1"
    )


def test_a_token_that_expires_while_waiting(kubeflow):
    kubeflow.server.fail("GET", "/runs/r-1", 401, "Jwt is expired")
    assert kubeflow(wait=True) == 1
    assert kubeflow.lines[-1].startswith(
        "the status cannot be read (401 Jwt is expired); the run continues"
    )


def test_ctrl_c_while_waiting_leaves_the_run_alone(kubeflow):
    kubeflow.server.states = [{"state": "RUNNING"}]
    lines = []

    def report(line):
        lines.append(line)
        if "running" in line:
            signal.raise_signal(signal.SIGINT)

    assert kubeflow(wait=True, report=report) == 130
    assert lines[-1].startswith("interrupted; the run continues, see or stop it at http://127")


def test_ctrl_c_while_submitting_reports_that_the_result_is_unknown(kubeflow):
    answer = kubeflow.server.answer

    def interrupt(request):
        if request.method == "POST" and request.path.endswith("/runs"):
            os.kill(os.getpid(), signal.SIGINT)
        return answer(request)

    kubeflow.server.answer = interrupt
    assert kubeflow(wait=True) == 130
    (line,) = kubeflow.lines
    assert "was submitted, check the cluster before a retry" in line
