"""How far a piece of work has come, said through a logger that whoever shows it listens to.

Workers log at most a few times a second to LOGGER, and `values` reads such a record. Without a
listener nothing is written anywhere.
"""

from __future__ import annotations

import logging
import time
from types import TracebackType
from typing import Any

LOGGER = logging.getLogger("progress")
LOGGER.setLevel(logging.INFO)
LOGGER.propagate = False
LOGGER.addHandler(logging.NullHandler())

_VALUES = "progress"
_SECONDS_BETWEEN = 0.25
_CHECK_EVERY = 1_000


def report(unit: str, done: int, total: int | None = None, source: str = "") -> None:
    """Says that `done` (of `total`) of `unit` are done, e.g. `report('steps', 12, 400)`.

    What several sources, such as files, report of one unit adds up.
    """
    said = {"unit": unit, "done": done, "total": total, "source": source}
    LOGGER.info("%s", unit, extra={_VALUES: said})


def values(record: logging.LogRecord) -> dict[str, Any]:
    """The arguments of the call of `report` that made a record of LOGGER."""
    said: dict[str, Any] = getattr(record, _VALUES)
    return said


class Progress:
    """Counts the items of one source cheaply and reports now and then, and at the end."""

    def __init__(self, unit: str, source: str):
        self._unit = unit
        self._source = source
        self._done = 0
        self._last = time.monotonic()
        self._next_check = _CHECK_EVERY

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        report(self._unit, self._done, source=self._source)

    def advance(self, count: int = 1) -> None:
        self._done += count
        if self._done >= self._next_check:
            self._next_check = self._done + _CHECK_EVERY
            now = time.monotonic()
            if now - self._last >= _SECONDS_BETWEEN:
                self._last = now
                report(self._unit, self._done, source=self._source)
