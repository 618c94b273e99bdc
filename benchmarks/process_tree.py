"""The CPU time and the memory of the descendants of this process, by kind, while something runs."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import psutil

_SECONDS_BETWEEN = 0.5
_PR_SET_CHILD_SUBREAPER = 36


@dataclasses.dataclass(frozen=True)
class Sample:
    """The processes at one moment.

    Attributes:
      time: of the monotonic clock.
      cpu: CPU seconds of all processes so far, including those that have ended.
      resident: kind -> resident memory of its processes, in bytes.
      together: memory of all processes in bytes. Of a page that several processes share, each has
        a part (PSS).
    """

    time: float
    cpu: float
    resident: Mapping[str, int]
    together: int


class Peaks(NamedTuple):
    """The greatest memory at any moment, in bytes.

    Attributes:
      of_kinds: kind -> that of all of its processes.
      together: that of all processes.
    """

    of_kinds: dict[str, int]
    together: int


class ProcessTree:
    """Samples the descendants of this process in a thread, until the context manager ends."""

    def __init__(self, kinds: Mapping[str, str], other: str = "other"):
        """Prepare the samples.

        Args:
          kinds: a word of a command line -> the kind of the process. The first word that is found
            decides.
          other: the kind of all other processes.
        """
        self._kinds = kinds
        self._other = other
        self._cpu: dict[psutil.Process, float] = {}
        self._samples: list[Sample] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample_until_end, daemon=True)

    def __enter__(self) -> ProcessTree:
        # A process whose parent has ended, such as a daemon, remains a descendant of this one.
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
        # What a new process has used before its first sample counts from here.
        self._samples.append(self._sample())
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        # Otherwise this process, which waits only for its own children, keeps others as zombies.
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 0)

    def cpu_seconds(self, start: float, end: float) -> float:
        """Return the CPU seconds from `start` to `end` of the monotonic clock."""
        return self._cpu_until(end) - self._cpu_until(start)

    def peaks(self, intervals: Sequence[tuple[float, float]]) -> Peaks:
        """Return the peaks of the memory in some intervals of the monotonic clock."""
        found = Peaks({}, 0)
        for sample in self._samples:
            if not any(start <= sample.time <= end for start, end in intervals):
                continue
            for kind, size in sample.resident.items():
                found.of_kinds[kind] = max(found.of_kinds.get(kind, 0), size)
            found = found._replace(together=max(found.together, sample.together))
        return found

    def _cpu_until(self, moment: float) -> float:
        if not self._samples:
            return 0.0
        times = [item.time for item in self._samples]
        return float(np.interp(moment, times, [item.cpu for item in self._samples]))

    def _sample_until_end(self) -> None:
        while not self._ended.wait(_SECONDS_BETWEEN):
            self._samples.append(self._sample())

    def _sample(self) -> Sample:
        resident: Counter[str] = Counter()
        together = 0
        for process in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error):
                command = " ".join(process.cmdline())
                memory = process.memory_full_info()
                self._cpu[process] = sum(process.cpu_times()[:2])
                kind = self._kind(command)
                resident[kind] += memory.rss
                together += memory.pss
        cpu = sum(self._cpu.values())
        return Sample(time.monotonic(), cpu, dict(resident), together)

    def _kind(self, command: str) -> str:
        return next((kind for word, kind in self._kinds.items() if word in command), self._other)
