"""Progress of long work, reported through a logger.

Workers log to LOGGER at most a few times a second. A display adds a handler to LOGGER and decodes
each record with `decode`. Without a handler nothing is written.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass

LOGGER = logging.getLogger("progress")
LOGGER.setLevel(logging.INFO)
LOGGER.propagate = False
LOGGER.addHandler(logging.NullHandler())

REVIEWS, BYTES = "reviews", "bytes"
"""Units that several packages count. A display shows the counts of a unit that begins with BYTES,
such as `bytes read`, in megabytes."""

_EVENT = "progress"
_SECONDS_BETWEEN = 0.25


@dataclass(frozen=True)
class Event:
    """A report of progress: a count, or the stage that the work has reached.

    Attributes:
      unit: the items that are counted, in the plural, such as `steps`; empty for a stage.
      done: the number of finished items of this source so far.
      total: the number of all items of all sources; None if it is unknown or was reported before.
      source: the part of the work, such as a file. A display adds up the sources of equal `unit`.
      loss: the loss of a training; None for other work.
      stage: what is done until the next event, such as `exporting the model`; empty for a count.
    """

    unit: str = ""
    done: int = 0
    total: int | None = None
    source: str = ""
    loss: float | None = None
    stage: str = ""


def send(event: Event) -> None:
    """Report progress with an event of this or of another process."""
    LOGGER.info("%s", event.unit or event.stage, extra={_EVENT: event})


def report(
    unit: str,
    done: int,
    total: int | None = None,
    source: str = "",
    loss: float | None = None,
) -> None:
    """Report a count, e.g. `report('steps', 12, 400)`; see `Event` for the arguments."""
    send(Event(unit, done, total, source, loss))


def report_stage(stage: str) -> None:
    """Report what is done until the next event, e.g. `report_stage('exporting the model')`."""
    send(Event(stage=stage))


def decode(record: logging.LogRecord) -> Event:
    """Return the event of a record of LOGGER."""
    event: Event = getattr(record, _EVENT)
    return event


class Progress:
    """A counter for the items of one source, see `report`.

    As a context manager it reports at most four times a second, and at the end.

    Args:
      unit: the name of the items that are counted, in the plural.
      source: the part of the work that this counter counts.
    """

    def __init__(self, unit: str, source: str):
        self._unit = unit
        self._source = source
        self._done = 0
        self._last = time.monotonic()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        report(self._unit, self._done, source=self._source)

    def advance(self, count: int) -> None:
        """Add `count` finished items."""
        self._done += count
        now = time.monotonic()
        if now - self._last >= _SECONDS_BETWEEN:
            self._last = now
            report(self._unit, self._done, source=self._source)
