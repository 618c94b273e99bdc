"""Call Flink's REST API. This module uses only the standard library, because `guard` imports it."""

from __future__ import annotations

import contextlib
import json
import urllib.request
from typing import Any

_SECONDS = 10
_ENDED = ("FINISHED", "FAILED", "CANCELED")


def get(address: str, path: str) -> Any:
    """Return the JSON that Flink answers, such as `get('127.0.0.1:8081', '/jobs/overview')`.

    Raises:
      OSError: Flink is not reachable, or answers with an error.
      ValueError: the answer is not JSON.
    """
    with urllib.request.urlopen(f"http://{address}{path}", timeout=_SECONDS) as answer:
        return json.load(answer)


def running_jobs(address: str, prefix: str) -> list[str]:
    """Return the ids of the jobs that have not ended and whose names start with `prefix`.

    Raises:
      OSError, ValueError: see `get`.
    """
    return [
        job["jid"]
        for job in get(address, "/jobs/overview")["jobs"]
        if job["name"].startswith(prefix) and job["state"] not in _ENDED
    ]


def cancel_jobs(address: str, prefix: str) -> None:
    """Cancel these jobs. An error is ignored: without Flink there is nothing to cancel."""
    with contextlib.suppress(OSError, ValueError):
        for job in running_jobs(address, prefix):
            request = urllib.request.Request(
                f"http://{address}/jobs/{job}?mode=cancel", method="PATCH"
            )
            urllib.request.urlopen(request, timeout=_SECONDS).close()
