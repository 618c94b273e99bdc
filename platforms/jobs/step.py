"""What steps have in common that train elsewhere: the file of the job, the end by a signal."""

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
    """Write the job for the replicas to read, never half of it; return the path of the file."""
    path = os.path.join(job.model_run_dir, JOB_FILE)
    fileio.makedirs(job.model_run_dir)
    with fileio.open(f"{path}.new", "w") as file:
        file.write(job.model_dump_json(indent=2))
    fileio.rename(f"{path}.new", path, overwrite=True)
    return path


@contextlib.contextmanager
def sigterm_raises() -> Iterator[None]:
    """SIGTERM raises SystemExit, once: what is done about it is not cut short by another one."""
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
