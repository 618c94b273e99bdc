"""Events from a child process to its parent: JSON objects, one a line, through a pipe.

The parent passes the file descriptor of the pipe's writing end in $EVENTS_FD. `amazon-reviews run`
receives the events of the pipeline's process this way. A training receives the events of its other
processes.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import threading
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TextIO

from core import progress

if TYPE_CHECKING:
    from typing_extensions import Self

VARIABLE = "EVENTS_FD"

PROGRESS, FAILED = "progress", "failed"
"""Kinds of event, the value of the key `event`.

`progress` has the attributes of a `core.progress.Event`, `failed` has `error`. The local runner
adds kinds of its own, see `platforms.local.events`.
"""

_LONGEST_ERROR = 2000
"""Maximum length of an error in characters. If the process is killed, the line of a longer error
could be incomplete."""


class Sender(logging.Handler):
    """A sender of events and of each record of `core.progress`; several threads may use it.

    Args:
      descriptor: the writing end of the pipe; None if no parent receives events.
    """

    def __init__(self, descriptor: int | None):
        super().__init__(logging.INFO)
        self.descriptor = descriptor
        self._sending = threading.Lock()

    @classmethod
    def attach(cls) -> Self:
        """Connect this process to its parent; return the sender, which also sends the progress.

        Only the first call connects: it removes $EVENTS_FD, and the children of this process do
        not inherit the pipe.
        """
        text = os.environ.pop(VARIABLE, None)
        sender = cls(int(text) if text else None)
        if text:
            os.set_inheritable(int(text), False)
            progress.LOGGER.addHandler(sender)
        return sender

    def emit(self, record: logging.LogRecord) -> None:
        self.send(PROGRESS, **asdict(progress.decode(record)))

    def send(self, kind: str, **values: Any) -> None:
        """Send an event; do nothing if no parent receives events, or if it has closed the pipe.

        Args:
          kind: the value of the key `event`.
          values: the other keys and their values, which JSON can represent.
        """
        if self.descriptor is None:
            return
        line = (json.dumps({"event": kind, **values}) + "\n").encode()
        # The parent closes the pipe before it ends this process.
        with self._sending, contextlib.suppress(BrokenPipeError):
            while line:
                line = line[os.write(self.descriptor, line) :]

    def fail(self, error: str, **values: Any) -> None:
        """Send the error that ends this process.

        Args:
          error: one line, of which at most 2,000 characters are sent.
          values: further keys of the event.
        """
        self.send(FAILED, error=error[:_LONGEST_ERROR], **values)


def receive(pipe: TextIO) -> Iterator[dict[str, Any]]:
    """Yield the events until the child closes the pipe.

    Args:
      pipe: the reading end of the pipe.
    """
    for line in pipe:
        # If the child was killed, its last line may be incomplete.
        with contextlib.suppress(json.JSONDecodeError):
            yield json.loads(line)
