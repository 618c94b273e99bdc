"""Waiting for what another thread or process does."""

import time


def wait(what, seconds=120):
    """Returns when `what()` is true; the deadline is for what hangs."""
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.01)
