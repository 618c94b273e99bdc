"""What a running pipeline tells the one who watches it: one JSON object per line through a pipe.

The sender is the process that runs the pipeline. TFX's local runner says through its log which
component runs, finishes, or is answered from the cache; this listens there and to the `progress`
logger, so the runner stays TFX's own.
"""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Iterator
from typing import Any, TextIO

from core import progress
from trainer_module.distribute.child import end_with_parent

PIPE_VARIABLE = "PIPELINE_EVENTS_FD"

RUNNING, CACHED, FINISHED = "running", "cached", "finished"
"""States of a component, in the order in which they come."""
PHASE, PROGRESS, OUTCOME, FAILED = "phase", "progress", "outcome", "failed"
"""Other kinds of event. A phase is what happens while no component runs, in its key `doing`."""

_STATE_OF_MESSAGE = {
    "Component %s is running.": RUNNING,
    "A cached execution %d is used.": CACHED,
    "Component %s is finished.": FINISHED,
}


class Sender(logging.Handler):
    """Turns log records into events, and sends events. Without a watcher it sends nothing."""

    def __init__(self, pipe: TextIO | None):
        super().__init__(logging.INFO)
        self._pipe = pipe
        self.component: str | None = None
        """The component that runs now, which is the one that failed if something does."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.name == progress.LOGGER.name:
            self.send(PROGRESS, **progress.values(record))
            return
        state = _STATE_OF_MESSAGE.get(str(record.msg))
        if state is None:
            return
        if state == RUNNING and isinstance(record.args, tuple):
            self.component = str(record.args[0])
        self.send(state, component=self.component)
        if state == FINISHED:
            self.component = None

    def send(self, kind: str, **values: Any) -> None:
        if self._pipe is not None:
            self._pipe.write(json.dumps({"event": kind, **values}) + "\n")
            self._pipe.flush()


def start_sending() -> Sender:
    """Attaches a Sender to TFX's log and the progress logger; the pipe is $PIPELINE_EVENTS_FD.

    A watched pipeline ends with its watcher: its standard input is a pipe that nobody writes to,
    and that closes when the watcher is gone, however it died.
    """
    descriptor = os.environ.pop(PIPE_VARIABLE, None)
    sender = Sender(os.fdopen(int(descriptor), "w") if descriptor else None)
    for name in ("absl", progress.LOGGER.name):
        logging.getLogger(name).addHandler(sender)
    if descriptor:
        threading.Thread(target=end_with_parent, daemon=True).start()
    return sender


def receive(pipe: TextIO) -> Iterator[dict[str, Any]]:
    """The events until the sender closes its end; a line that a kill cut short is dropped."""
    for line in pipe:
        try:
            yield json.loads(line)
        except json.JSONDecodeError:
            return
