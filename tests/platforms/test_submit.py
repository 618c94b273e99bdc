"""Checks before a submission, and following a run, on either cluster."""

import itertools
import signal
import time
from unittest.mock import Mock

import pytest
import yaml

from cli import compile as command
from core import exit_codes
from core.errors import ConfigError
from platforms import follow
from platforms.vertex import client as vertex_client
from platforms.vertex import schedules as vertex_schedules


def test_errors_are_reported_before_compiling(kubeflow, tmp_path, monkeypatch):
    monkeypatch.setattr(command, "compile_checked", lambda *arguments: pytest.fail("compiled"))
    config = tmp_path / "config.yaml"
    for wrong in (None, "host:8080"):
        kubeflow.settings["kubeflow"]["endpoint"] = wrong
        config.write_text(yaml.safe_dump(kubeflow.settings))
        with pytest.raises(ConfigError, match=f"kubeflow.endpoint: {wrong or 'not set'}; set the"):
            command.submit("kubeflow", config=str(config))
    with pytest.raises(ConfigError, match="--parameter: 'epochs' is not KEY=VALUE"):
        command.submit("kubeflow", parameter=["epochs"], config=str(config))


def test_each_loss_of_the_connection_is_reported_and_has_its_own_patience(monkeypatch):
    clock = Mock(monotonic=itertools.count(step=10).__next__, strftime=time.strftime)
    monkeypatch.setattr(follow, "time", clock)
    running, lost = follow.Status("RUNNING"), follow.NoResponse("gone")
    states = Mock(side_effect=[lost, lost, running, lost, follow.Status("SUCCEEDED")])
    run, lines = Mock(status=states, tasks=[]), []
    monkeypatch.setattr(follow, "PATIENCE_SECONDS", 25)
    assert follow.follow(run, lines.append) == 0
    assert lines.count("no response (gone); retrying") == 2


@pytest.mark.parametrize(
    ("state", "code"),
    [("SUCCEEDED", 0), ("SKIPPED", 0), ("FAILED", 1), ("CANCELED", 1), ("CANCELLED", 1)],
)
def test_each_end_of_a_run_has_its_exit_code(monkeypatch, state, code):
    monkeypatch.setattr(follow.time, "sleep", Mock())
    states = Mock(side_effect=[follow.Status(each) for each in ("PENDING", "RUNNING", state)])
    run = follow.Run("name", (), "link", "logs", states)
    assert follow.follow(run, Mock()) == code


@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [
        (502, "bad gateway", "no response for 0.1 s (502 bad gateway)"),
        (401, "Jwt is expired", "the status cannot be read (401 Jwt is expired)"),
    ],
)
def test_a_status_that_cannot_be_read(kubeflow, monkeypatch, status, body, reason):
    monkeypatch.setattr(follow, "PATIENCE_SECONDS", 0.1)
    kubeflow.server.fail("GET", "/runs/r-1", status, body, times=1000)
    assert kubeflow(wait=True) == 1
    page = f"{kubeflow.server.url}/#/runs/details/r-1"
    assert kubeflow.lines[-1] == f"{reason}; the run continues, see or stop it at {page}"


def test_ctrl_c_while_waiting_leaves_the_run_alone(kubeflow):
    kubeflow.server.states = [{"state": "RUNNING"}]
    lines = []

    def report(line):
        lines.append(line)
        if "running" in line:
            signal.raise_signal(signal.SIGINT)

    assert kubeflow(wait=True, report=report) == 130
    assert lines[-1].startswith("interrupted; the run continues, see or stop it at http://kub")


def test_ctrl_c_before_the_response_names_what_the_cluster_may_have_accepted(
    kubeflow, vertex, monkeypatch
):
    real = kubeflow.server.request
    sent = []

    def request(method, url, body, *options):
        answer = real(method, url, body, *options)
        if method == "POST" and url.endswith("runs"):
            sent.append(body["display_name"])
            signal.raise_signal(signal.SIGINT)
        return answer

    def create(client, request, **options):
        run = request.get("pipeline_job_id")
        sent.append(run or request["schedule"].display_name)
        signal.raise_signal(signal.SIGINT)

    kubeflow.server.request = request
    monkeypatch.setattr(vertex_client.PipelineServiceClient, "create_pipeline_job", create)
    monkeypatch.setattr(vertex_schedules.ScheduleServiceClient, "create_schedule", create)
    for cluster in (kubeflow, vertex):
        for start in (cluster, cluster.schedule):
            with pytest.raises(follow.Interrupted) as caught:
                start()
            assert caught.value.exit_code == exit_codes.INTERRUPTED
            message = f"interrupted; it is unknown whether {sent[-1]} was submitted, check http"
            assert str(caught.value).startswith(message)
    assert len(sent) == 4
