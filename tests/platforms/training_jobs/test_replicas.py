"""The pods of a job over time: what the end of a job means, and which restarts count."""

import pytest

from platforms.training_jobs.kinds import JOBSET, TFJOB
from platforms.training_jobs.pods import Pod
from platforms.training_jobs.replicas import JobEnd, Replicas

LOSS = "TFJob x has failed because 1 Worker replica(s) failed."


def pod(phase, code=None, number=1, replica="chief"):
    time = f"2026-01-01T00:00:{number:02}Z"
    return Pod("x", f"{replica} {number}", replica, phase, code, "", time, time, "")


@pytest.mark.parametrize(
    ("kind", "condition", "pods", "end"),
    [
        (JOBSET, "Completed", [], JobEnd.DONE),
        (JOBSET, "Failed", [pod("Succeeded", 0)], JobEnd.DONE),
        (JOBSET, "Failed", [pod("Failed", 137)], JobEnd.FAILED),
        (TFJOB, "Failed", [pod("Failed", 137)], JobEnd.LOST_REPLICA),
        (TFJOB, "Failed", [pod("Running")], JobEnd.LOST_REPLICA),
        (TFJOB, "Failed", [pod("Running"), pod("Failed", 1, 1, "ps 0")], JobEnd.FAILED),
        (TFJOB, "Failed", [], JobEnd.FAILED),
    ],
)
def test_the_end_of_a_job_has_one_of_three_meanings(kind, condition, pods, end):
    replicas = Replicas(str)
    replicas.update(pods)
    assert replicas.interpret_end({"type": condition, "message": LOSS}, kind) is end


def test_restarts_count_until_the_next_checkpoint():
    checkpoints = iter(["a", "a", "b"])
    replicas = Replicas(lambda: next(checkpoints))
    counts = []
    for number in range(1, 5):
        restarted = replicas.update([pod("Running", number=number)])
        assert restarted == (["chief"] if number > 1 else [])
        counts.append(replicas.most_restarts)
    assert counts == [0, 1, 2, 1]
    assert replicas.update([pod("Running", number=4)]) == []
