"""Votes of synchronous processes: their frequency and their result. What SIGTERM leaves."""

import json
import os

import pytest
import tensorflow as tf

from trainer_module.cluster.tf_config import Cluster
from trainer_module.loop import checkpoint_folders, preemption
from trainer_module.loop.preemption import PreemptionSync


class StubSignal:
    requested = False


class Alone:
    """A stub for the Collective of the only process."""

    needed = False


class OfTwo:
    """A stub for the Collective of two processes with equal step times."""

    needed, processes = True, 2

    def __init__(self):
        self.other_requests = 0.0
        self.votes = 0

    def sum(self, here):
        self.votes += 1
        return here + tf.stack([self.other_requests, here[1]])

    def wait_for_all(self):
        raise tf.errors.UnavailableError(None, None, "Socket closed")


@pytest.fixture
def clock(monkeypatch):
    class Clock:
        now = 0.0

        def perf_counter(self):
            return self.now

    clock = Clock()
    monkeypatch.setattr(preemption, "time", clock)
    return clock


def votes_after(steps, seconds, clock):
    """Return the steps after which there is a vote, if each step takes `seconds`."""
    collective = OfTwo()
    vote, seen = PreemptionSync(StubSignal(), collective), []
    for step in range(1, steps + 1):
        clock.now += seconds
        before = collective.votes
        assert not vote.after_step()
        if collective.votes > before:
            seen.append(step)
    return seen


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0.25, [1, 5, 9]),
        (5.0, [*range(1, 12)]),
        (0.001, [1]),
    ],
)
def test_votes_are_about_a_second_apart(clock, seconds, expected):
    assert votes_after(11, seconds, clock) == expected


def test_votes_are_no_more_than_a_few_steps_apart(clock):
    assert votes_after(40, 0.0001, clock) == [1, 17, 33]


def test_a_vote_follows_the_time_that_a_step_takes_now(clock):
    collective = OfTwo()
    vote = PreemptionSync(StubSignal(), collective)
    for seconds, steps in ((0.5, 1), (0.5, 2), (2.0, 2), (2.0, 1), (2.0, 1)):
        before = collective.votes
        for _ in range(steps):
            assert collective.votes == before
            clock.now += seconds
            vote.after_step()
        assert collective.votes == before + 1


def test_sigterm_to_any_process_ends_them_all(clock):
    collective, sigterm = OfTwo(), StubSignal()
    vote = PreemptionSync(sigterm, collective)
    assert not vote.now()
    collective.other_requests = 1.0
    assert vote.now(), "the other process received SIGTERM"
    collective.other_requests = 0.0
    sigterm.requested = True
    assert vote.now(), "this process received SIGTERM"


def test_a_process_does_not_wait_for_one_that_has_ended():
    PreemptionSync(StubSignal(), OfTwo()).wait_for_all()


def test_a_single_process_ends_without_a_vote(clock):
    sigterm = StubSignal()
    vote = PreemptionSync(sigterm, Alone())
    assert not vote.after_step() and not vote.now()
    sigterm.requested = True
    assert vote.after_step() and vote.now()
    vote.wait_for_all()


CLUSTER = Cluster({"chief": ["a:1"], "worker": ["b:1"], "ps": ["c:1"]}, "chief", 0)
# A cluster restarts the first two processes, but not the third.
SIGTERM = SystemExit(143)
LOST_PEER = tf.errors.UnavailableError(None, None, "Connection reset by peer")
FAILED = tf.errors.NotFoundError(None, None, "/data/train-0.gz")


@pytest.mark.parametrize(
    ("error", "seconds", "kept"),
    [
        (SIGTERM, 30, True),
        (SIGTERM, 3600, False),
        (LOST_PEER, 30, True),
        (LOST_PEER, 3600, False),
        (FAILED, 30, False),
    ],
    ids=str,
)
def test_the_checkpoints_of_a_training_that_is_restarted_elsewhere_are_kept(
    tmp_path, error, seconds, kept
):
    ended, other = tmp_path / f"{1:016x}-00000000", tmp_path / f"{2:016x}-00000000"
    with pytest.raises(type(error)), checkpoint_folders.claimed(str(ended), CLUSTER):
        (ended / "ckpt-1.index").touch()
        raise error
    heartbeat = ended / "running.json"
    assert heartbeat.exists() == (error is not FAILED)
    if heartbeat.exists():
        heartbeat.write_text(json.dumps({**json.loads(heartbeat.read_text()), "host": "another"}))
        then = heartbeat.stat().st_mtime - seconds
        os.utime(heartbeat, (then, then))
    with checkpoint_folders.claimed(str(other)):
        checkpoint_folders.remove_stale(str(other))
    assert ended.exists() == kept
