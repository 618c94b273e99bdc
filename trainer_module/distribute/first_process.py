"""SIGTERM where this process is the first one of a container, as in the pods of a TFJob."""

from __future__ import annotations

import os
import signal
import threading


def end_at_sigterm() -> None:
    """Lets SIGTERM end this process if its id is 1; to be called in the main thread.

    Linux ignores a signal there that has no handler, and Python runs no handler while the main
    thread is inside TensorFlow, where a parameter server stays for good: a pod would take all of
    its grace period to end. So a thread ends the process. A training that can save meanwhile
    switches this off, see `Termination`.
    """
    if os.getpid() != 1:
        return
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.signal(signal.SIGTERM, lambda number, frame: None)
    # Python writes the number of each signal there at once, whatever the main thread does.
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    threading.Thread(target=_end, args=[reading], daemon=True).start()


def _end(descriptor: int) -> None:
    while os.read(descriptor, 1) != bytes([signal.SIGTERM]):
        pass
    os._exit(128 + signal.SIGTERM)
