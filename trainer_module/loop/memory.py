"""The memory usage of this process."""

from __future__ import annotations

import contextlib
import resource
from pathlib import Path


def peak_rss() -> int:
    """Return the peak resident memory of this process so far, in bytes.

    The value is VmHWM of /proc. Some container runtimes do not report VmHWM; then the value is
    `ru_maxrss` of getrusage, which a new process inherits from its parent.
    """
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
