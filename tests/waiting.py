"""A function that waits for a condition in another thread or process."""

import time


def wait(condition, seconds=120):
    """Return when `condition()` is true; fail after a deadline, so that no test hangs."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)
