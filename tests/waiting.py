"""A function that waits for a condition in another thread or process."""

import time


def wait(what, seconds=120):
    """Return when `what()` is true; fail after a deadline, so that no test hangs."""
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.01)
