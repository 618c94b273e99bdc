"""Flink's REST API: the progress of jobs and their cancellation. Imports no large library."""

from __future__ import annotations

import contextlib
import http.client
import json
import time
import urllib.request
from collections.abc import Callable
from typing import Any

from core import progress

_SECONDS = 10
_ENDED = ("FINISHED", "FAILED", "CANCELED")
_METRICS = ("read-bytes", "write-bytes", "read-records", "write-records")
# A proxy for the internet cannot reach Flink.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))
ERRORS = (OSError, http.client.HTTPException, ValueError, LookupError, TypeError)
"""The errors of this module if Flink does not respond, or another program responds."""


def get(address: str, path: str) -> Any:
    """Return the JSON of a response, such as that of `get('127.0.0.1:8081', '/overview')`.

    Args:
      address: `HOST:PORT` of the REST API.
      path: the path of the URL.

    Raises:
      OSError, http.client.HTTPException, ValueError: see `ERRORS`.
    """
    return json.loads(_call(address, path, "GET"))


def class_path(address: str) -> list[str]:
    """Return the paths in the class path of the JobManager.

    Raises:
      OSError, http.client.HTTPException, ValueError, LookupError, TypeError: see `ERRORS`.
    """
    return [str(path) for path in get(address, "/jobmanager/environment")["classpath"]]


def jobs(address: str, prefix: str = "") -> list[dict[str, Any]]:
    """Return Flink's overview of the jobs whose names start with `prefix`.

    Raises:
      OSError, http.client.HTTPException, ValueError, LookupError, TypeError: see `ERRORS`.
    """
    found = get(address, "/jobs/overview")["jobs"]
    return [job for job in found if job["name"].startswith(prefix)]


def running_jobs(address: str, prefix: str) -> list[str]:
    """Return the ids of the jobs that have not ended and whose names start with `prefix`.

    Raises:
      OSError, http.client.HTTPException, ValueError, LookupError, TypeError: see `ERRORS`.
    """
    return [job["jid"] for job in jobs(address, prefix) if job["state"] not in _ENDED]


def cancel_jobs(address: str, prefix: str) -> None:
    """Cancel the running jobs whose names start with `prefix`.

    Errors are ignored, because a job may end before the request.
    """
    with contextlib.suppress(*ERRORS):
        for job in running_jobs(address, prefix):
            with contextlib.suppress(*ERRORS):
                _call(address, f"/jobs/{job}?mode=cancel", "PATCH")


def _call(address: str, path: str, method: str) -> bytes:
    request = urllib.request.Request(f"http://{address}{path}", method=method)
    with _OPENER.open(request, timeout=_SECONDS) as answer:
        content: bytes = answer.read()
        return content


class Watch:
    """The progress of one job.

    Args:
      name: the name of the job.
      address: returns `HOST:PORT` of the REST API, or None as long as Flink has not started.
      timeout: the seconds without progress after which the job counts as stalled.
    """

    def __init__(self, name: str, address: Callable[[], str | None], timeout: float):
        self._name, self._address, self._timeout = name, address, timeout
        self._seen: Any = None
        self._since = time.monotonic()

    def stalled(self) -> bool:
        """Read the state of the job from Flink; return whether its timeout has expired."""
        state = self._state()
        if state is not None and state != self._seen:
            self._seen, self._since = state, time.monotonic()
        return time.monotonic() - self._since > self._timeout

    def _state(self) -> Any:
        """Return a value that changes with any progress; None if Flink does not respond."""
        address = self._address()
        if address is None:
            return None
        try:
            job = next((job for job in jobs(address) if job["name"] == self._name), None)
            if job is None:
                return None
            tasks = job["tasks"]
            progress.report(f"tasks at http://{address}", tasks["finished"], tasks["total"])
            vertices = get(address, f"/jobs/{job['jid']}")["vertices"]
        except ERRORS:
            return None
        return [tasks, [[each["metrics"].get(name) for name in _METRICS] for each in vertices]]
