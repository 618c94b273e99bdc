"""Functions that wait for other threads and processes."""

import time

import psutil


def wait(condition, seconds=120):
    """Return when `condition()` is true; fail after a deadline, so that no test hangs."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def alive(process):
    """Return whether a psutil process runs; it may end at any moment."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
