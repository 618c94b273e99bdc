"""Functions that run and wait for other threads and processes."""

import threading
import time

import psutil


def wait(condition, seconds=120, pause=0.01):
    """Return when `condition()` is true; fail after a deadline, so that no test hangs."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(pause)


def alive(process):
    """Return whether a psutil process runs; it may end at any moment."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def in_background(act):
    """Call `act` in a thread; return the thread and the list of the exceptions that it raised."""
    raised = []

    def run():
        try:
            act()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, raised
