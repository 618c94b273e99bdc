"""One process of a local cluster: its start, its log, its events and its end."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from absl import logging

from core import events
from trainer_module.distribute import lost_peer

_EXTERNAL_SIGNALS = ("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP")
_LINES_KEPT = 20
_SECONDS_TO_DRAIN = 2.0
_ERROR_LINE = re.compile(r"\b\w*(Error|Exception)\b|Check failed|[Ff]atal")


def attach() -> events.Sender:
    """Send the progress to the parent that started this process as a `Child`; call it once.

    Without such a parent the sender sends nothing.
    """
    descriptor = events.take_descriptor()
    sender = events.Sender(descriptor)
    events.attach(sender, descriptor)
    return sender


class Child:
    """A child process, whose output is copied to the log of this process line by line.

    Args:
      name: the name in the log, such as `worker 1`.
      command: program and arguments.
      environ: its environment variables.
      cores: the CPU cores on which the child may run; None: the cores of this process.
      on_end: called with the Child, in another thread, once it has ended.
      on_progress: called with the arguments of each `core.progress.report` of the child.

    Attributes:
      code: exit code, negative for a signal; None until `on_end` is called.
      failure: the reason of its failure, if the child has sent one.
      noticed: `time.monotonic()` of the first sign of its end.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        environ: Mapping[str, str],
        cores: set[int] | None,
        on_end: Callable[[Child], None],
        on_progress: Callable[[dict[str, Any]], None],
    ):
        self.name = name
        self.code: int | None = None
        self.failure: str | None = None
        self.noticed: float | None = None
        self._lines: deque[str] = deque(maxlen=_LINES_KEPT)
        self._on_end = on_end
        self._on_progress = on_progress
        reading_end, writing_end = os.pipe()
        try:
            with _on_cores(cores):
                self._process = subprocess.Popen(
                    list(command),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    pass_fds=[writing_end],
                    env={**environ, events.VARIABLE: str(writing_end)},
                    # Only the parent receives Ctrl-C from the terminal, and ends its children.
                    start_new_session=True,
                )
        except BaseException:
            os.close(reading_end)
            raise
        finally:
            os.close(writing_end)
        readers = [
            threading.Thread(target=self._read_log, daemon=True),
            threading.Thread(target=self._read_events, args=[reading_end], daemon=True),
        ]
        for reader in readers:
            reader.start()
        threading.Thread(target=self._wait, args=[readers], daemon=True).start()

    @property
    def killed_by(self) -> str | None:
        """The name of the signal that ended the process, directly or by its exit code."""
        if self.code is None or self.lost_peer:
            return None
        # 128 + signal is the convention of shells, and of processes that handle a signal.
        number = -self.code if self.code < 0 else self.code - 128
        return signal.Signals(number).name if number in set(signal.Signals) else None

    @property
    def lost_peer(self) -> bool:
        """Whether the process ended because another process of the cluster was gone."""
        return self.code == lost_peer.EXIT_CODE

    @property
    def killed_from_outside(self) -> bool:
        """Whether the process received a signal that the end of a peer never causes."""
        return self.killed_by in _EXTERNAL_SIGNALS

    @property
    def outcome(self) -> str:
        """The end of the process as a predicate for its name, such as "was killed (SIGTERM)"."""
        if self.killed_from_outside:
            return f"was killed ({self.killed_by})"
        if self.killed_by:
            return f"crashed ({self.killed_by}): {self.error}"
        if self.failure:
            return f"failed: {self.failure}"
        return f"ended with exit code {self.code}: {self.error}"

    @property
    def error(self) -> str:
        """The reason of its end in one line: `failure`, or the best line of its log."""
        if self.failure:
            return self.failure
        lines = [line for line in self._lines if line.strip()] or ["no output"]
        return next((line for line in reversed(lines) if _ERROR_LINE.search(line)), lines[-1])

    def log_contains(self, text: str) -> bool:
        """Return whether the end of its log, or `failure`, contains `text`."""
        return any(text in line for line in [*self._lines, self.failure or ""])

    def terminate(self) -> None:
        """Send SIGTERM, unless the process has ended."""
        self._process.terminate()

    def kill(self) -> None:
        """Send SIGKILL, unless the process has ended."""
        self._process.kill()

    def _read_log(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for raw in lines:
                line = raw.decode(errors="replace").rstrip()
                self._lines.append(line)
                logging.info("[%s] %s", self.name, line)

    def _read_events(self, descriptor: int) -> None:
        with os.fdopen(descriptor, errors="replace") as pipe:
            for event in events.receive(pipe):
                if event.pop("event") == events.PROGRESS:
                    self._on_progress(event)
                else:
                    self.noticed = self.noticed or time.monotonic()
                    self.failure = event["error"]

    def _wait(self, readers: Sequence[threading.Thread]) -> None:
        code = self._process.wait()
        self.noticed = self.noticed or time.monotonic()
        deadline = time.monotonic() + _SECONDS_TO_DRAIN
        for reader in readers:
            # A process that the child started may keep its ends of the pipes open.
            reader.join(max(0.0, deadline - time.monotonic()))
        self.code = code
        self._on_end(self)


@contextlib.contextmanager
def _on_cores(cores: set[int] | None) -> Iterator[None]:
    """Within the context, let processes that this thread starts run on `cores` from the start."""
    if cores is None:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
