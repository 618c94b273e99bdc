"""A job server that cannot use the cluster is one line before anything starts."""

import contextlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import apache_beam as beam
import pytest

from core.errors import ConfigError
from core.flink import probe
from core.flink.failures import FlinkError
from platforms.flink import check_job
from tests.core.test_flink_jobs import job_server, settings

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("flink")]

# What Flink 1.20.1 answers to a job of 1.19.
OF_ANOTHER_FLINK = (
    "org.apache.flink.runtime.rest.handler.RestHandlerException: Failed to deserialize JobGraph.\n"
    "\tat org.apache.flink.runtime.rest.handler.job.JobSubmitHandler.a(JobSubmitHandler.java:145)\n"
    "Caused by: java.lang.ClassNotFoundException: org.apache.flink.runtime.jobgraph.RestoreMode\n"
)


@contextlib.contextmanager
def flink_of_another_version():
    """Run a server that refuses each job as a Flink of another version; yield its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.answer(200, {"jobs": [], "slots-total": 1, "flink-version": "1.20.1"})

        def do_POST(self):
            end, last = b"\r\n0\r\n\r\n", b""
            while not last.endswith(end) and (read := self.rfile.read1(1 << 20)):
                last = last[-len(end) :] + read
            self.answer(400, {"errors": [OF_ANOTHER_FLINK]})

        def answer(self, code, value):
            body = json.dumps(value).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("localhost", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"localhost:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def test_a_job_server_for_another_version_of_flink_is_refused_before_a_run(flink_jars, tmp_path):
    with (
        flink_of_another_version() as master,
        job_server(flink_jars, tmp_path, master) as (server, flink),
        pytest.raises(ConfigError) as error,
    ):
        check_job(settings(tmp_path, **flink))
    assert str(error.value) == (
        f"beam.flink.job_endpoint: {server.endpoint} cannot run a job on {master} (Flink 1.20.1): "
        f"the Flink cluster {master} cannot read the job, because the job server is for another "
        "version of Flink: org.apache.flink.runtime.jobgraph.RestoreMode"
    )


class Result:
    """The result of a job whose end the job server reports after a time, or never."""

    def __init__(self, error=None):
        self._error = error
        self.asked = threading.Event()

    def wait_until_finish(self):
        if self._error is None:
            self.asked.wait()
        else:
            raise self._error


@pytest.mark.parametrize(
    ("states", "error", "found"),
    [
        # The job server does not report the end of a job without metrics.
        (["", "RUNNING", "FINISHED"], None, ""),
        (["FAILED"], FlinkError("a class is missing"), "a class is missing"),
        ([""], FlinkError("refused"), "refused"),
        # All slots are used.
        (["CANCELLING"], FlinkError("no progress"), ""),
    ],
)
def test_the_state_of_the_job_on_the_cluster_decides(monkeypatch, states, error, found):
    left = list(states)
    monkeypatch.setattr(probe, "_state", lambda _: left.pop(0) if len(left) > 1 else left[0])
    monkeypatch.setattr(probe, "_SECONDS_BETWEEN", 0.01)
    result = Result(error)
    monkeypatch.setattr(beam.Pipeline, "run", lambda _: result)
    assert probe.problem(["--flink_master=localhost:1"]) == found
    result.asked.set()
