"""Watch a Flink job: report its progress, and limit the time without progress."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from core import progress
from platforms.flink import rest

_SECONDS_BETWEEN_METRICS = 10.0
"""For each answer the JobManager requests the metrics of all tasks from the TaskManagers."""
_METRICS = ("read-bytes", "write-bytes", "read-records", "write-records")


class Watch:
    """The progress of one job, according to Flink's REST API."""

    def __init__(self, name: str, address: Callable[[], str | None], timeout: float):
        """Watch the job `name`.

        Args:
          name: the name of the job.
          address: returns the REST address, or None as long as Flink has not started.
          timeout: greatest number of seconds without progress.
        """
        self._name, self._address, self._timeout = name, address, timeout
        self._seen: Any = None
        self._metrics: list[list[Any]] = []
        self._since = self._next_metrics = time.monotonic()

    def stalled(self) -> bool:
        """Read the state of the job from Flink; return whether it made no progress for too long."""
        state = self._state()
        if state is not None and state != self._seen:
            self._seen, self._since = state, time.monotonic()
        return time.monotonic() - self._since > self._timeout

    def _state(self) -> Any:
        """Return a value that changes with any progress; None if Flink does not answer."""
        address = self._address()
        if address is None:
            return None
        try:
            job = next((job for job in rest.jobs(address) if job["name"] == self._name), None)
            if job is None:
                return None
            tasks = job["tasks"]
            progress.report(f"tasks at http://{address}", tasks["finished"], tasks["total"])
            if time.monotonic() >= self._next_metrics:
                vertices = rest.get(address, f"/jobs/{job['jid']}")["vertices"]
                self._metrics = [
                    [each["metrics"].get(name) for name in _METRICS] for each in vertices
                ]
                between = min(_SECONDS_BETWEEN_METRICS, self._timeout / 10)
                self._next_metrics = time.monotonic() + between
        except (OSError, ValueError, KeyError):
            return None
        return [tasks, self._metrics]
