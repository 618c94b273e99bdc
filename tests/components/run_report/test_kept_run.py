"""A run that is kept for MLflow: its file has the outcome, and the reader restores it."""

import dataclasses
import errno
import http.server
import os
import threading

import pytest
import requests
import tensorflow as tf

from components.run_report.content import collect
from components.run_report.mlflow_connection import connected
from components.run_report.mlflow_run import Record
from components.run_report.unsent import keep, read_kept
from core.errors import ServerError
from tests.components.run_report.artifacts import write_run
from tests.outcomes import OUTCOME


@pytest.mark.parametrize("outcome", [OUTCOME, None])
def test_a_kept_run_has_its_outcome(tmp_path, outcome):
    written = write_run(tmp_path / "run")
    run = dataclasses.replace(written, outcome=outcome, pushed_to="", span="2026-11-28")
    unsent = tmp_path / "unsent"
    unsent.mkdir()
    keep(str(unsent), Record(collect(run), {"platform": "local"}, ""))
    [file] = unsent.glob("*.json")
    found = read_kept(str(file))
    assert found.content.run.outcome == outcome
    assert found.content.run.steps == run.steps
    assert found.content.run.span == run.span


@pytest.fixture
def server(monkeypatch):
    """The URI of a server that refuses every request."""
    monkeypatch.setattr(os, "environ", os.environ.copy())  # `connected` sets variables.
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "written: OSError: .* No space left"),
        (
            tf.errors.PermissionDeniedError(None, None, "gs://b/f"),
            "written: Permission.*: gs://b/f",
        ),
        (requests.ReadTimeout("no answer"), "{uri} does not respond .ReadTimeout: no answer"),
        (ConnectionResetError("reset by peer"), "{uri}: ConnectionResetError: reset by peer"),
    ],
)
def test_mlflow_is_not_blamed_for_an_error_of_a_file(server, error, message):
    found = f"^tracking.mlflow: (a file of this machine .* )?{message.format(uri=server)}"
    with pytest.raises(ServerError, match=found) as raised, connected(server):
        raise error
    assert (server in str(raised.value)) == ("{uri}" in message)
