"""Long-running operations of Vertex AI: those of this attempt, and those of an earlier attempt."""

from __future__ import annotations

import time
from typing import Any

from absl import logging
from google.api_core import exceptions

from platforms.google_cloud.api import ApiError, retrying

LABELS = {"managed_by": "amazon-reviews"}
_HOURS = 2.0
"""Timeout of an operation in hours; Vertex AI itself ends a deployment after that time."""


def wait_for(client: Any, operation: Any, poll_seconds: float) -> None:
    """Return when a google.longrunning.Operation is done.

    Raises:
      GoogleAPICallError: the operation failed.
      ApiError: the operation did not end in time.
    """
    deadline = time.monotonic() + _HOURS * 3600
    while not operation.done:
        if time.monotonic() > deadline:
            raise ApiError(f"{operation.name} is not done after {_HOURS:g} hours")
        time.sleep(poll_seconds)
        operation = client.get_operation(request={"name": operation.name}, **retrying())
    if operation.error.code:
        raise exceptions.from_grpc_status(operation.error.code, operation.error.message)


def wait_for_earlier(client: Any, resource: str, poll_seconds: float) -> None:
    """Return when every operation on `resource` has ended, even if it failed.

    A killed push leaves its operations running.
    """
    try:
        found = client.list_operations(request={"name": resource}, **retrying()).operations
    except exceptions.NotFound:
        return
    for operation in found:
        if operation.done:
            continue
        logging.info("Waiting for %s", operation.name)
        try:
            wait_for(client, operation, poll_seconds)
        except exceptions.GoogleAPICallError as error:
            # This attempt repeats the failed operation.
            logging.warning("%s failed: %s", operation.name, error)
