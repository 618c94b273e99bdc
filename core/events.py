"""Events from a child process to its parent: JSON objects, one a line, through a pipe.

The parent passes the file descriptor of the pipe's writing end in $EVENTS_FD. `amazon-reviews run`
receives the events of the pipeline's process this way. A training receives the events of its other
processes. Each kind of event is a dataclass, and a reader ignores the kinds that it does not use.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TextIO

from core import progress

if TYPE_CHECKING:
    from typing_extensions import Self

VARIABLE = "EVENTS_FD"


@dataclass(frozen=True)
class Phase:
    """The start of work outside of any component.

    Attributes:
      doing: the work, such as `loading TFX`.
    """

    doing: str


State = Literal["running", "cached", "finished"]
"""States of a component, in their order. Only a component with a cache hit is `cached`."""


@dataclass(frozen=True)
class ComponentState:
    """A new state of a component.

    Attributes:
      component: the id of the component.
      state: the state that it has from now on.
    """

    component: str
    state: State


@dataclass(frozen=True)
class RunOutcome:
    """The end of a run without an error.

    Attributes:
      outcome: the JSON of a `components.run_report.outcome.Outcome`, which this package cannot
        import.
    """

    outcome: Mapping[str, Any]


@dataclass(frozen=True)
class Failed:
    """The failure that ends a process or a run.

    Attributes:
      error: the error in one line.
      component: the id of the component that failed or was interrupted; None outside of any.
      wrong_input: whether the settings or the input are wrong.
    """

    error: str
    component: str | None = None
    wrong_input: bool = False


Event = progress.Event | Phase | ComponentState | RunOutcome | Failed
"""What a process sends to its parent. A training sends only its progress and its failure."""

_TYPES: Mapping[str, type[Event]] = {
    "progress": progress.Event,
    "phase": Phase,
    "component": ComponentState,
    "outcome": RunOutcome,
    "failed": Failed,
}
_KINDS = {type_: kind for kind, type_ in _TYPES.items()}

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
        self.send(progress.decode(record))

    def send(self, event: Event) -> None:
        """Send an event; do nothing if no parent receives events, or if it has closed the pipe."""
        if self.descriptor is None:
            return
        line = (encode(event) + "\n").encode()
        # The parent closes the pipe before it ends this process.
        with self._sending, contextlib.suppress(BrokenPipeError):
            while line:
                line = line[os.write(self.descriptor, line) :]

    def fail(self, error: str, component: str | None = None, *, wrong_input: bool = False) -> None:
        """Send the failure that ends this process; see `Failed` for the arguments.

        At most 2,000 characters of the error are sent.
        """
        self.send(Failed(error[:_LONGEST_ERROR], component, wrong_input))


def encode(event: Event) -> str:
    """Return an event as a line of JSON, without the line break."""
    return json.dumps({"event": _KINDS[type(event)], **vars(event)})


def decode(line: str) -> Event | None:
    """Return the event of a line; None if the line is incomplete or the kind is unknown."""
    try:
        values = json.loads(line)
    except json.JSONDecodeError:
        # If the child was killed, its last line may be incomplete.
        return None
    type_ = _TYPES.get(values.pop("event"))
    return type_(**values) if type_ else None


def receive(pipe: TextIO) -> Iterator[Event]:
    """Yield the events of known kinds until the child closes the pipe.

    Args:
      pipe: the reading end of the pipe.
    """
    for line in pipe:
        event = decode(line)
        if event is not None:
            yield event
