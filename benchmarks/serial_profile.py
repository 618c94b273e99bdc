"""Run a module, and record every tenth of a second what its busiest thread does.

    python -m benchmarks.serial_profile SAMPLES.jsonl MODULE [ARGUMENT …]

A thread of the same process takes the samples. Of every interval it writes the CPU time of all
threads and that of the busiest one, and the place in the code of that thread. A thread of a library
has no Python stack: its place is that of the main thread, and the name of the thread.

`summary` divides the time into three kinds. In "one thread" at least four fifths of the CPU time
are those of a single thread: no further core would make this part faster. In "waiting" all threads
together use less than a fifth of a core: they wait for the disk, another process or a timeout. The
rest is "several threads". An interval that is a mixture counts as one kind, and the CPU time of a
thread has steps of 10 ms. On a busy machine too much of the time is "waiting" and "one thread".
"""

from __future__ import annotations

import json
import runpy
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import psutil

_INTERVAL = 0.1
_REPOSITORY = str(Path(__file__).parents[1])
_BENCHMARKS = str(Path(__file__).parent)
_SERIAL_SHARE = 0.8
_WAITING_CORES = 0.2
KINDS = ("one thread", "several threads", "waiting")


class Sample(NamedTuple):
    """One interval.

    Attributes:
      time: its end, in seconds since the epoch.
      seconds: its duration.
      cpu: CPU seconds of all threads.
      busiest: CPU seconds of the busiest thread.
      place: the place of that thread in the code.
    """

    time: float
    seconds: float
    cpu: float
    busiest: float
    place: str

    @property
    def kind(self) -> str:
        if self.cpu < _WAITING_CORES * self.seconds:
            return "waiting"
        return "one thread" if self.busiest >= _SERIAL_SHARE * self.cpu else "several threads"


class Summary(NamedTuple):
    """The kinds of a time.

    Attributes:
      seconds: kind -> its seconds.
      serial: place -> its seconds of the kind "one thread".
    """

    seconds: Counter[str]
    serial: Counter[str]


def read(file: Path) -> list[Sample]:
    """Read the samples of a module that has ended."""
    return [Sample(*json.loads(line)) for line in file.read_text().splitlines()]


def summary(samples: Iterable[Sample], start: float, end: float) -> Summary:
    """Summarise the samples from `start` to `end`, in seconds since the epoch."""
    found = Summary(Counter(), Counter())
    for sample in samples:
        if start < sample.time <= end:
            found.seconds[sample.kind] += sample.seconds
            if sample.kind == "one thread":
                found.serial[sample.place] += sample.seconds
    return found


def record(file: Path) -> None:
    """Start the thread that writes samples until this process ends."""
    threading.Thread(target=_record, args=[file], daemon=True).start()


def _record(file: Path) -> None:
    process = psutil.Process()
    own = threading.get_native_id()
    used: dict[int, float] = {}
    last = time.perf_counter()
    # Line by line: the process may end at any time without notice.
    with file.open("w", buffering=1) as out:
        while True:
            time.sleep(_INTERVAL)
            now = time.perf_counter()
            found = {t.id: t.user_time + t.system_time for t in process.threads() if t.id != own}
            new = {thread: cpu - used.get(thread, 0.0) for thread, cpu in found.items()}
            busiest = max(new, key=lambda thread: new[thread])
            sample = Sample(
                time.time(), now - last, sum(new.values()), new[busiest], _place(busiest)
            )
            out.write(json.dumps(sample) + "\n")
            used, last = found, now


def _place(thread: int) -> str:
    """Return where a thread of this process is, by its native id."""
    idents = {each.native_id: each.ident for each in threading.enumerate()}
    frames: dict[Any, FrameType] = sys._current_frames()
    frame = frames.get(idents.get(thread))
    if frame is not None:
        return _names(frame)
    try:
        name = Path(f"/proc/self/task/{thread}/comm").read_text().strip()
    except OSError:
        name = "a thread that has ended"
    main = frames.get(threading.main_thread().ident)
    return f"{_names(main) if main else '?'}, thread {name}"


def _names(frame: FrameType) -> str:
    """Return the innermost function of this repository, and the innermost function of all."""
    leaf = _name(frame)
    each: FrameType | None = frame
    while each is not None:
        file = each.f_code.co_filename
        if file.startswith(_REPOSITORY) and not file.startswith((_BENCHMARKS, sys.prefix)):
            name = _name(each)
            return name if name == leaf else f"{name} > {leaf}"
        each = each.f_back
    return leaf


def _name(frame: FrameType) -> str:
    return f"{frame.f_globals.get('__name__', '?')}.{frame.f_code.co_name}"


def main() -> None:
    file, module, *arguments = sys.argv[1:]
    record(Path(file))
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
