"""Call Flink's REST API. This module imports only the standard library, because `guard` does."""

from __future__ import annotations

import contextlib
import http.client
import json
import urllib.request
from typing import Any

_SECONDS = 10
_ENDED = ("FINISHED", "FAILED", "CANCELED")
# A proxy for the internet does not reach Flink.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def get(address: str, path: str) -> dict[str, Any]:
    """Return the JSON object that Flink answers, such as `get('127.0.0.1:8081', '/overview')`.

    Raises:
      OSError: Flink is not reachable, or answers with an error.
      ValueError: the answer is not a JSON object.
    """
    answer = json.loads(_call(address, path, "GET"))
    if not isinstance(answer, dict):
        raise ValueError(f"{path} is not an object")
    return answer


def jobs(address: str, prefix: str = "") -> list[dict[str, Any]]:
    """Return Flink's overview of the jobs whose names start with `prefix`.

    Raises:
      OSError, ValueError: see `get`.
    """
    found = get(address, "/jobs/overview").get("jobs", [])
    return [job for job in found if job["name"].startswith(prefix)]


def running_jobs(address: str, prefix: str) -> list[str]:
    """Return the ids of the jobs that have not ended and whose names start with `prefix`.

    Raises:
      OSError, ValueError: see `get`.
    """
    return [job["jid"] for job in jobs(address, prefix) if job["state"] not in _ENDED]


def cancel_jobs(address: str, prefix: str) -> None:
    """Cancel these jobs. Errors are ignored: a job that has ended cannot be cancelled."""
    with contextlib.suppress(OSError, ValueError):
        for job in running_jobs(address, prefix):
            with contextlib.suppress(OSError):
                _call(address, f"/jobs/{job}?mode=cancel", "PATCH")


def _call(address: str, path: str, method: str) -> bytes:
    request = urllib.request.Request(f"http://{address}{path}", method=method)
    try:
        with _OPENER.open(request, timeout=_SECONDS) as answer:
            content: bytes = answer.read()
            return content
    except http.client.HTTPException as error:
        raise OSError(f"no answer in HTTP: {error!r}") from None
