"""Synchronous processes end together."""

import time

import pytest
import tensorflow as tf

from trainer_module.cluster import collective
from trainer_module.cluster.collective import Collective

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
