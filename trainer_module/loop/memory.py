"""What this process has used of the memory."""

from __future__ import annotations

import contextlib
import resource
from pathlib import Path


def peak_rss() -> int:
    """The most memory that this process has had resident so far, in bytes.

    getrusage's `ru_maxrss` is the second choice: a process that was just started inherits its
    parent's there. But not every kernel that runs containers tells the other.
    """
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
