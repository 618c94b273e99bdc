"""Events from the process of a pipeline to its monitor: one JSON object per line, through a pipe.

TFX's local runner logs which component starts, finishes or is a cache hit. A logging handler turns
these records, and those of the `progress` logger, into events, so the runner stays TFX's own.
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
"""Other kinds of event. The key `doing` of a phase describes the work while no component runs."""

_STATE_OF_MESSAGE = {
    "Component %s is running.": RUNNING,
    "A cached execution %d is used.": CACHED,
    "Component %s is finished.": FINISHED,
}


class Sender(logging.Handler):
    """A logging handler that sends log records as events; without a pipe it sends nothing."""

    def __init__(self, pipe: TextIO | None):
        super().__init__(logging.INFO)
        self._pipe = pipe
        self.component: str | None = None
        """The component that runs now, and that failed if an exception is raised; None: none."""

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
    """Attach a Sender to TFX's log and the progress logger; the pipe is $PIPELINE_EVENTS_FD.

    A pipeline with a monitor ends with it. The standard input of the pipeline's process is a pipe
    that is always empty, and that closes when the monitor ends, even after SIGKILL.
    """
    descriptor = os.environ.pop(PIPE_VARIABLE, None)
    sender = Sender(os.fdopen(int(descriptor), "w") if descriptor else None)
    for name in ("absl", progress.LOGGER.name):
        logging.getLogger(name).addHandler(sender)
    if descriptor:
        threading.Thread(target=end_with_parent, daemon=True).start()
    return sender


def receive(pipe: TextIO) -> Iterator[dict[str, Any]]:
    """Yield the events until the sender closes the pipe; drop an incomplete line after a kill."""
    for line in pipe:
        try:
            yield json.loads(line)
        except json.JSONDecodeError:
            return
