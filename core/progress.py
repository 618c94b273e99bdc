"""Progress of long work, reported through a logger.

Workers log to LOGGER at most a few times a second. A display adds a handler to LOGGER and decodes
each record with `values`. Without a handler nothing is written.
"""

from __future__ import annotations

import logging
import time
from typing import Any

LOGGER = logging.getLogger("progress")
LOGGER.setLevel(logging.INFO)
LOGGER.propagate = False
LOGGER.addHandler(logging.NullHandler())

_VALUES = "progress"
_SECONDS_BETWEEN = 0.25


def report(unit: str, done: int, total: int | None = None, source: str = "") -> None:
    """Report progress, e.g. `report('steps', 12, 400)`.

    Args:
      unit: the name of the items that are counted, in the plural.
      done: the number of finished items of this source so far.
      total: the number of all items; None if it is unknown.
      source: the part of the work, such as a file. A display adds up the sources of equal `unit`.
    """
    progress = {"unit": unit, "done": done, "total": total, "source": source}
    LOGGER.info("%s", unit, extra={_VALUES: progress})


def values(record: logging.LogRecord) -> dict[str, Any]:
    """Return the arguments of the `report` call that created `record`."""
    progress: dict[str, Any] = getattr(record, _VALUES)
    return progress


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
