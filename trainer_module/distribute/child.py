"""A process of a local cluster: the parent starts and watches it, and receives its events.

The child sends its progress, and the reason of a failure, as JSON lines through the pipe whose
descriptor is in $TRAINING_EVENTS_FD. Its standard input is a pipe that no process writes to. The
pipe closes when the parent ends, for whatever reason, and then the child ends too.
"""

from __future__ import annotations

import contextlib
import json
import logging as standard_logging
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

from core import progress
from trainer_module.distribute import lost_peer

PIPE_VARIABLE = "TRAINING_EVENTS_FD"

_FROM_OUTSIDE = ("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP")
_LINES_KEPT = 20
_SECONDS_TO_DRAIN = 2.0
_LONGEST_ERROR = 2000
"""Characters of an error message. A longer one might not be written to the pipe in one piece."""
_ERROR_LINE = re.compile(r"\b\w*(Error|Exception)\b|Check failed|[Ff]atal")


class ToParent(standard_logging.Handler):
    """The child's end of the pipe; without a parent all events are discarded."""

    def __init__(self, descriptor: int | None):
        super().__init__(standard_logging.INFO)
        self._descriptor = descriptor

    def emit(self, record: standard_logging.LogRecord) -> None:
        self._send(progress=progress.values(record))

    def failed(self, error: str) -> None:
        """Send the reason why this process is about to end."""
        self._send(failed=error[:_LONGEST_ERROR])

    def _send(self, **event: Any) -> None:
        if self._descriptor is not None:
            # If the parent is gone, `end_with_parent` ends this process.
            with contextlib.suppress(BrokenPipeError):
                os.write(self._descriptor, (json.dumps(event) + "\n").encode())


def attach() -> ToParent:
    """Connect this process to the parent that started it as a `Child`, if there is one.

    Call this once, at the start. From then on, the process ends when its parent ends, and
    `core.progress` reports to the parent.
    """
    text = os.environ.pop(PIPE_VARIABLE, None)
    if text is None:
        return ToParent(None)
    descriptor = int(text)
    os.set_inheritable(descriptor, False)
    to_parent = ToParent(descriptor)
    progress.LOGGER.addHandler(to_parent)
    threading.Thread(target=end_with_parent, daemon=True).start()
    return to_parent


def end_with_parent() -> None:
    """Wait until standard input closes, then end this process; call this in a thread of its own."""
    # A thread that holds the lock of sys.stdin would prevent the interpreter from shutting down.
    while os.read(0, 1):
        pass
    os._exit(1)


class Child:
    """A child process, whose output is copied to the log of this process line by line.

    Args:
      name: for the log, such as `worker 1`.
      command: program and arguments.
      environ: its environment variables.
      cores: the CPU cores on which it may run; None: the cores of this process.
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
        events, events_of_child = os.pipe()
        try:
            with _on_cores(cores):
                self._process = subprocess.Popen(
                    list(command),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    pass_fds=[events_of_child],
                    env={**environ, PIPE_VARIABLE: str(events_of_child)},
                    # Only the parent receives Ctrl-C from the terminal, and ends its children.
                    start_new_session=True,
                )
        except BaseException:
            os.close(events)
            raise
        finally:
            os.close(events_of_child)
        readers = [
            threading.Thread(target=self._read_log, daemon=True),
            threading.Thread(target=self._read_events, args=[events], daemon=True),
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
        return self.killed_by in _FROM_OUTSIDE

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
            for line in pipe:
                # A kill may have truncated the last line.
                with contextlib.suppress(json.JSONDecodeError):
                    self._handle(json.loads(line))

    def _handle(self, event: dict[str, Any]) -> None:
        if "progress" in event:
            self._on_progress(event["progress"])
        else:
            self.noticed = self.noticed or time.monotonic()
            self.failure = event["failed"]

    def _wait(self, readers: Sequence[threading.Thread]) -> None:
        code = self._process.wait()
        self.noticed = self.noticed or time.monotonic()
        deadline = time.monotonic() + _SECONDS_TO_DRAIN
        for reader in readers:
            # A process that the child started may keep its ends of the pipes open.
            reader.join(max(0.0, deadline - time.monotonic()))
        assert self._process.stdin is not None
        self._process.stdin.close()
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
