"""The conditions in the status of a TFJob."""

from __future__ import annotations

from typing import Any

SUCCEEDED, FAILED = "Succeeded", "Failed"


def end_of(job: dict[str, Any]) -> dict[str, Any] | None:
    """Return the condition with which a TFJob ended; None: it has not ended."""
    for condition in current(job):
        if condition["type"] in (SUCCEEDED, FAILED):
            return condition
    return None


def current(job: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the conditions of a TFJob that are true, the latest last."""
    conditions = job.get("status", {}).get("conditions") or []
    return [condition for condition in conditions if condition["status"] == "True"]


def message_of(condition: dict[str, Any]) -> str:
    """Return the message of a condition."""
    return str(condition.get("message", ""))
