"""SIGTERM for the first process of a container, as in the pods of a training."""

from __future__ import annotations

import os
import signal
import threading


def end_at_sigterm() -> None:
    """Let SIGTERM end this process if its id is 1; call this in the main thread.

    For process 1, Linux ignores signals without a handler. Python runs no handler while the main
    thread is inside TensorFlow, and a parameter server never leaves TensorFlow. So a pod would end
    only after its whole grace period. Therefore a thread ends the process. `Termination` switches
    this off while the training can write a checkpoint.
    """
    if os.getpid() != 1:
        return
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.signal(signal.SIGTERM, lambda number, frame: None)
    # Python writes the number of each signal to this pipe at once, whatever the main thread does.
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    threading.Thread(target=_end, args=[reading], daemon=True).start()


def _end(descriptor: int) -> None:
    while os.read(descriptor, 1) != bytes([signal.SIGTERM]):
        pass
    os._exit(128 + signal.SIGTERM)
