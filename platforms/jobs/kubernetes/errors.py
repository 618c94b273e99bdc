"""The errors of requests to the Kubernetes API, with messages of one line."""

from __future__ import annotations

import json
from typing import Any

from kubernetes.client.exceptions import ApiException

from core.errors import InputError, ServerError
from platforms.jobs.kubernetes.kind import JobKind


class Forbidden(InputError):
    """A request that the API denies for lack of permissions; the message is one line."""


class Unreachable(ServerError, RuntimeError):
    """An API that did not respond before the timeout; the message is one line."""


class NotServed(InputError):
    """A request for a kind that the cluster does not have; the message is one line."""


class NotFound(Exception):
    """A request for an object that does not exist."""


class AlreadyExists(Exception):
    """A request to create a job with the name of an existing job."""


def refusal(
    error: ApiException, kind: JobKind, verb: str, resource: str, namespace: str
) -> Exception:
    """Convert an error after which a retry is useless.

    Args:
      error: the error of the client library.
      kind: the kind of the job.
      verb, resource: the request, such as `create` and `tfjobs`.
      namespace: the namespace of the request.

    Returns:
      A NotFound, NotServed, AlreadyExists, Forbidden or InputError.
    """
    status, message = _status(error), message_of(error)
    request = f"{verb} {resource} in namespace {namespace}"
    if error.status == 401:
        return Forbidden(
            f"Kubernetes rejects the credentials to {request}: {message}; {kind.permissions}"
        )
    # Quotas and admission webhooks also respond with 403, and no Role would help.
    if error.status == 403 and "cannot" in message:
        return Forbidden(
            f"Kubernetes does not allow this step to {request}: {message}; {kind.permissions}"
        )
    if error.status == 404:
        if status.get("details", {}).get("kind") == "namespaces":
            return InputError(f"there is no namespace {namespace} in this cluster")
        if verb != "create" and status.get("reason") == "NotFound":
            return NotFound()
        return NotServed(
            f"no {kind.title} CRD in this cluster: install {kind.controller} "
            f"({request}: {error.status} {message})"
        )
    if error.status == 409 and status.get("reason") == "AlreadyExists":
        return AlreadyExists()
    return InputError(
        f"Kubernetes refuses to {request}: {error.status} {message}{kind.remedy(message)}"
    )


def message_of(error: ApiException) -> str:
    """Return the server's explanation of an error in one line."""
    body = error.body.decode(errors="replace") if error.body else ""
    return " ".join(str(_status(error).get("message") or body or error.reason).split())[:1000]


def retry_after(error: ApiException) -> float:
    """Return the seconds in the header Retry-After of an error; 0.0 without the header."""
    text = (error.headers or {}).get("Retry-After", "")
    return float(text) if text.isdigit() else 0.0


def one_line(error: Exception) -> str:
    """Return the message of an exception without line breaks and without a period at the end."""
    return " ".join(str(error).split()).rstrip(".")


def _status(error: ApiException) -> dict[str, Any]:
    """Return the Status object in the body of an error; empty if there is none."""
    try:
        status = json.loads(error.body or b"")
    except ValueError:
        return {}
    return status if isinstance(status, dict) and status.get("kind") == "Status" else {}
