"""Common parts of the steps that start a job: the file with the job, and the handler of SIGTERM."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator

from tfx.dsl.io import fileio

from trainer_module.distribute.local_cluster import JOB_FILE
from trainer_module.settings import TrainingJob


def write_job(job: TrainingJob) -> str:
    """Write the job to a file for the replicas, atomically; return the path of the file."""
    path = os.path.join(job.model_run_dir, JOB_FILE)
    fileio.makedirs(job.model_run_dir)
    with fileio.open(f"{path}.new", "w") as file:
        file.write(job.model_dump_json(indent=2))
    fileio.rename(f"{path}.new", path, overwrite=True)
    return path


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
