"""The CPU cores and the memory of a process."""

from __future__ import annotations

import contextlib
import functools
import math
import os
import re
from pathlib import Path

import psutil

_CGROUPS = Path("/sys/fs/cgroup")
_MEMBERSHIP = Path("/proc/self/cgroup")
"""The file with the cgroups of this process: ID:CONTROLLERS:PATH on each line."""


def cores() -> int:
    """Return the number of CPU cores that this process may use.

    In a container with a CPU limit these are fewer than the cores of the machine. A limit of half a
    core counts as one core.
    """
    return max(1, min(len(os.sched_getaffinity(0)), _cpu_limit()))


@functools.cache
def _cpu_limit() -> int:
    """Return the CPU limit of the cgroups of this process in cores, rounded up."""
    limits = [float(2**31)]
    for line in _text(_MEMBERSHIP).splitlines():
        # Version 2 has one hierarchy, without names of controllers.
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        root = _CGROUPS / "cpu" if controllers else _CGROUPS
        # In a container the path may be one of the host. Each limit applies to the groups below.
        own = root / path.lstrip("/")
        limits += [_quota(each) for each in (own, *own.parents) if each.is_relative_to(root)]
    return math.ceil(min(limits))


def _quota(folder: Path) -> float:
    """Return the CPU limit of a cgroup of version 2 or 1 in cores; infinity if it has none."""
    old = [_text(folder / f"cpu.cfs_{name}_us").strip() for name in ("quota", "period")]
    found = re.fullmatch(r"(\d+) (\d+)", _text(folder / "cpu.max").strip() or " ".join(old))
    return int(found[1]) / int(found[2]) if found and int(found[2]) else math.inf


def _text(file: Path) -> str:
    """Return the text of a file; empty if it cannot be read."""
    with contextlib.suppress(OSError):
        return file.read_text()
    return ""


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
