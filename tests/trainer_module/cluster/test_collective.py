"""Synchronous processes end together."""

import time

import pytest
import tensorflow as tf

from trainer_module.cluster import collective
from trainer_module.cluster.collective import Collective

GONE = tf.errors.UnavailableError(None, None, "Collective ops is aborted by: Socket closed")


class Peer:
    """A collective with another process that has ended before sum number `gone`."""

    def __init__(self, monkeypatch, gone=None):
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


def test_a_process_stays_until_all_have_the_sum_that_they_wait_for(monkeypatch):
    peer = Peer(monkeypatch)
    peer.collective.wait_for_all()
    assert peer.sums == 2


def test_a_process_that_has_ended_since_is_no_failure(monkeypatch):
    peer = Peer(monkeypatch, gone=2)
    peer.collective.wait_for_all()
    assert peer.sums == 2


def test_a_process_that_ended_before_the_sum_is_a_failure(monkeypatch):
    peer = Peer(monkeypatch, gone=1)
    with pytest.raises(tf.errors.UnavailableError):
        peer.collective.wait_for_all()


def test_a_single_process_does_not_wait(monkeypatch):
    peer = Peer(monkeypatch)
    peer.collective.processes = 1
    peer.collective.wait_for_all()
    assert peer.sums == 0


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
