"""Votes of synchronous processes: their frequency and their result."""

import signal

import pytest
import tensorflow as tf

from trainer_module.loop import preemption
from trainer_module.loop.preemption import PreemptionSync


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


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        # About a second apart, but at most 16 steps.
        ([0.25] * 11, [1, 5, 9]),
        ([5.0] * 11, [*range(1, 12)]),
        ([0.0001] * 40, [1, 17, 33]),
        # A vote follows the time that a step takes now.
        ([0.5, 0.5, 0.5, 2.0, 2.0, 2.0, 2.0], [1, 3, 5, 6, 7]),
    ],
)
def test_votes_are_about_a_second_apart(clock, seconds, expected):
    collective = OfTwo()
    vote, seen = PreemptionSync(collective), []
    for step, duration in enumerate(seconds, 1):
        clock.now += duration
        before = collective.votes
        assert not vote.after_step()
        if collective.votes > before:
            seen.append(step)
    assert seen == expected


def test_sigterm_to_any_process_ends_them_all(clock):
    collective = OfTwo()
    vote = PreemptionSync(collective)
    assert not vote.now()
    collective.other_requests = 1.0
    assert vote.now(), "the other process received SIGTERM"
    collective.other_requests = 0.0
    vote.request(signal.SIGTERM)
    assert vote.now(), "this process received SIGTERM"
    # The other process has ended, which is no error.
    vote.wait_for_all()


def test_a_single_process_ends_without_a_vote(clock):
    vote = PreemptionSync(Alone())
    assert not vote.after_step() and not vote.now()
    vote.request(signal.SIGTERM)
    assert vote.after_step() and vote.now()
    vote.wait_for_all()
