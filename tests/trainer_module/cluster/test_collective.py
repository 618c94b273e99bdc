"""Synchronous processes: they end together, and vote on SIGTERM."""

import signal
import time

import pytest
import tensorflow as tf

from trainer_module.cluster import collective
from trainer_module.cluster.collective import Collective, PreemptionSync

GONE = tf.errors.UnavailableError(None, None, "Collective ops is aborted by: Socket closed")


class Peer:
    """A collective with another process that has ended before sum number `gone`."""

    def __init__(self, monkeypatch, gone):
        self.sums = 0
        self.gone = gone
        self.collective = Collective(tf.distribute.get_strategy(), None)
        self.collective.processes = 2
        monkeypatch.setattr(self.collective, "_sum", self.sum)

    def sum(self, here):
        self.sums += 1
        if self.sums == self.gone:
            raise GONE
        return 2 * here


@pytest.mark.parametrize(("processes", "gone", "sums"), [(2, None, 2), (2, 2, 2), (1, None, 0)])
def test_a_process_stays_until_all_have_the_sum_that_they_wait_for(
    monkeypatch, processes, gone, sums
):
    """Another process may have ended before the second sum; a single process does not wait."""
    peer = Peer(monkeypatch, gone)
    peer.collective.processes = processes
    peer.collective.wait_for_all()
    assert peer.sums == sums


def test_a_process_that_ended_before_the_sum_is_a_failure(monkeypatch):
    with pytest.raises(tf.errors.UnavailableError):
        Peer(monkeypatch, gone=1).collective.wait_for_all()


def test_a_long_wait_is_logged_with_the_processes_that_are_waited_for(monkeypatch, caplog):
    monkeypatch.setattr(collective, "_SECONDS_BEFORE_LOG", 0.01)
    with caplog.at_level("INFO", logger="absl"), collective.waiting_for("worker 1"):
        time.sleep(0.2)
    assert "Waiting for worker 1" in caplog.text
    caplog.clear()
    with caplog.at_level("INFO", logger="absl"), collective.waiting_for("worker 2"):
        pass
    time.sleep(0.05)
    assert caplog.text == ""


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
    monkeypatch.setattr(collective, "time", clock)
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
    peer = OfTwo()
    vote, seen = PreemptionSync(peer), []
    for step, duration in enumerate(seconds, 1):
        clock.now += duration
        before = peer.votes
        assert not vote.after_step()
        if peer.votes > before:
            seen.append(step)
    assert seen == expected


def test_sigterm_to_any_process_ends_them_all(clock):
    peer = OfTwo()
    vote = PreemptionSync(peer)
    assert not vote.now()
    peer.other_requests = 1.0
    assert vote.now(), "the other process received SIGTERM"
    peer.other_requests = 0.0
    vote.request(signal.SIGTERM)
    assert vote.now(), "this process received SIGTERM"
    # The other process has ended, which is no error.
    vote.wait_for_all()
