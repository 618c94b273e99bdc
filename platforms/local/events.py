"""The sender of the events of a local run, which follows the state of each component.

TFX's local runner logs when a component runs, finishes or is a cache hit. A logging handler turns
these records into events, so the runner stays TFX's own.
"""

from __future__ import annotations

import logging

from core import events, progress

_STATE_OF_MESSAGE: dict[str, events.State] = {
    "Component %s is running.": "running",
    "A cached execution %d is used.": "cached",
    "Component %s is finished.": "finished",
}


class RunSender(events.Sender):
    """A logging handler that sends the records of TFX's log as events.

    Args:
      descriptor: the file descriptor to which the events are written; None: they are discarded.

    Attributes:
      component: the component that runs now; None if none does. If the run raises an exception,
        this component failed.
    """

    def __init__(self, descriptor: int | None):
        super().__init__(descriptor)
        self.component: str | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Send a record as an event, if it reports progress or the state of a component."""
        if record.name == progress.LOGGER.name:
            super().emit(record)
            return
        state = _STATE_OF_MESSAGE.get(str(record.msg))
        if state is None:
            return
        if state == "running" and isinstance(record.args, tuple):
            self.component = str(record.args[0])
        if self.component is not None:
            self.send(events.ComponentState(self.component, state))
        if state == "finished":
            self.component = None
