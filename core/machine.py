"""The CPU cores and the memory of a process."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import psutil


def cores() -> int:
    """Return the number of CPU cores that this process may use."""
    return len(os.sched_getaffinity(0))


def peak_rss(pid: int | None = None) -> int:
    """Return the peak resident memory of a process so far, in bytes.

    If the container runtime does not report the peak, the current memory is returned.

    Args:
      pid: the id of the process; None: this process.

    Raises:
      psutil.NoSuchProcess: the process has ended.
    """
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path(f"/proc/{pid or 'self'}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return int(psutil.Process(pid).memory_info().rss)
