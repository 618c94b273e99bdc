"""What the step of a training job needs on every platform: the name of the job, and a clean end."""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import threading
from collections.abc import Iterator

from trainer_module.settings import TrainingJob


def job_name(job: TrainingJob) -> str:
    """Return the name of a training's job, which every attempt of one execution shares.

    The name is a DNS-1035 label of 31 characters. The controllers append the replica to it for the
    names of the pods.
    """
    identity = f"{os.path.basename(job.checkpoint_dir)}\0{job.serving_model_dir}"
    return f"amazon-reviews-{hashlib.sha256(identity.encode()).hexdigest()[:16]}"


@contextlib.contextmanager
def sigterm_raises() -> Iterator[None]:
    """Raise SystemExit at the first SIGTERM in this context; ignore any later SIGTERM.

    A second SIGTERM therefore does not interrupt the clean-up after the first one.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, frame: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL if before is None else before)
