"""The progress of a Flink job, and the limit of the time without it; jobs that are cancelled."""

import json
import time

import pytest

from core.progress import Event
from platforms.flink import rest
from platforms.flink.rest import Watch

NAME = "amazon-reviews-abc-0001"
ADDRESS = "localhost:8081"


class Flink:
    """Answers as Flink's REST API, for a job and two others."""

    def __init__(self):
        self.state, self.read, self.cancelled = "RUNNING", 0, []
        self.tasks = {"total": 9, "running": 1, "finished": 2}

    def call(self, address, path, method):
        if method == "PATCH":
            self.cancelled.append(path)
            if len(self.cancelled) == 1:
                raise OSError("HTTP Error 409: Conflict")
        if path != "/jobs/overview":
            return json.dumps({"vertices": [{"metrics": {"read-records": self.read}}]}).encode()
        jobs = [(NAME, self.state), (f"{NAME}0", "RUNNING"), ("another", "RUNNING")]
        answer = [
            {"jid": name, "name": name, "state": state, "tasks": self.tasks} for name, state in jobs
        ]
        return json.dumps({"jobs": answer}).encode()


@pytest.fixture
def flink(monkeypatch):
    state = Flink()
    monkeypatch.setattr(rest, "_call", state.call)
    return state


@pytest.mark.parametrize("change", ["nothing", "a task", "a record", "no answer"])
def test_a_job_without_any_progress_is_stalled(flink, reported, change):
    watch = Watch(NAME, lambda: None if change == "no answer" else ADDRESS, timeout=0.2)
    assert not watch.stalled()
    time.sleep(0.3)
    flink.tasks["finished"] += change == "a task"
    flink.read += change == "a record"
    assert watch.stalled() is (change in ("nothing", "no answer"))
    if change == "a task":
        unit = f"tasks at http://{ADDRESS}"
        assert reported == [Event(unit, 2, 9), Event(unit, 3, 9)]


def test_only_running_jobs_of_the_prefix_are_cancelled_and_an_error_stops_none(flink):
    rest.cancel_jobs(ADDRESS, NAME)
    assert flink.cancelled == [f"/jobs/{NAME}?mode=cancel", f"/jobs/{NAME}0?mode=cancel"]
    flink.state = "FINISHED"
    rest.cancel_jobs(ADDRESS, NAME)
    assert flink.cancelled[2:] == [f"/jobs/{NAME}0?mode=cancel"]
