"""The limit of the time without progress of a Flink job."""

import json
import logging
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from core import progress
from platforms.flink import rest
from platforms.flink.progress import Watch

NAME = "amazon-reviews-abc-0001"
TASKS = {"total": 9, "running": 1, "finished": 2}


class Flink:
    """The state of a job, as Flink's REST API describes it."""

    def __init__(self):
        self.state, self.tasks, self.read = "RUNNING", dict(TASKS), 0
        self.cancelled = []
        self.paths = []

    def answer(self, path):
        self.paths.append(path)
        if path == "/jobs/overview":
            jobs = [(NAME, self.state), (f"{NAME}0", "RUNNING"), ("another", "RUNNING")]
            return {
                "jobs": [
                    {"jid": name, "name": name, "state": state, "tasks": self.tasks}
                    for name, state in jobs
                ]
            }
        return {"vertices": [{"metrics": {"read-records": self.read}}]}


@pytest.fixture
def flink():
    """Return a Flink, and the address of a server that answers for it."""
    state = Flink()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(state.answer(self.path)).encode())

        def do_PATCH(self):
            state.cancelled.append(self.path)
            self.send_response(409 if len(state.cancelled) == 1 else 202)
            self.end_headers()

        def log_message(self, *_):
            pass

    with serving(Handler) as address:
        state.address = address
        yield state


@contextmanager
def serving(handler):
    with HTTPServer(("localhost", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"localhost:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("change", ["nothing", "a task", "a record"])
def test_a_job_without_any_progress_is_stalled(flink, change):
    watch = Watch(NAME, lambda: flink.address, timeout=0.2)
    assert not watch.stalled()
    time.sleep(0.3)
    flink.tasks["finished"] += change == "a task"
    flink.read += change == "a record"
    assert watch.stalled() is (change == "nothing")


def test_the_progress_has_the_finished_tasks_and_the_address_of_the_page_of_flink(flink):
    received = []
    handler = logging.Handler()
    handler.emit = lambda record: received.append(progress.values(record))
    progress.LOGGER.addHandler(handler)
    try:
        watch = Watch(NAME, lambda: flink.address, timeout=1000)
        assert not watch.stalled()
        flink.tasks["finished"] += 1
        assert not watch.stalled()
    finally:
        progress.LOGGER.removeHandler(handler)
    unit = f"tasks at http://{flink.address}"
    assert received == [{"unit": unit, "done": done, "total": 9, "source": ""} for done in (2, 3)]


def test_the_metrics_of_the_tasks_are_not_requested_each_time(flink):
    watch = Watch(NAME, lambda: flink.address, timeout=1000)
    assert not watch.stalled()
    assert not watch.stalled()
    assert flink.paths == ["/jobs/overview", f"/jobs/{NAME}", "/jobs/overview"]


def test_a_flink_that_does_not_answer_is_stalled():
    watch = Watch(NAME, lambda: None, timeout=0.1)
    assert not watch.stalled()
    time.sleep(0.2)
    assert watch.stalled()


def test_only_jobs_of_the_prefix_are_cancelled_and_an_error_stops_none(flink):
    rest.cancel_jobs(flink.address, NAME)
    assert flink.cancelled == [f"/jobs/{NAME}?mode=cancel", f"/jobs/{NAME}0?mode=cancel"]
    # An ended job is not cancelled.
    flink.state = "FINISHED"
    rest.cancel_jobs(flink.address, NAME)
    assert flink.cancelled[2:] == [f"/jobs/{NAME}0?mode=cancel"]


def test_a_server_that_does_not_speak_http_is_not_reachable():
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.wfile.write(b"SETTINGS")

    with serving(Handler) as address, pytest.raises(OSError, match="no answer in HTTP"):
        rest.get(address, "/overview")
