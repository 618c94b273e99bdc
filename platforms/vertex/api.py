"""Clients of the Vertex AI API, with retries and errors of one line."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from absl import logging
from google.api_core import exceptions
from google.api_core.retry import Retry, if_exception_type
from google.auth.exceptions import DefaultCredentialsError, GoogleAuthError, TransportError

from core.errors import InputError
from platforms.follow import NoResponse
from platforms.google_credentials import credentials_problem

TRANSIENT = (
    exceptions.DeadlineExceeded,
    exceptions.InternalServerError,
    exceptions.ServiceUnavailable,
    exceptions.TooManyRequests,
    exceptions.Unknown,
    TransportError,
)
"""The errors after which a retry of the same request may succeed."""
_REFUSED = (exceptions.BadRequest, exceptions.NotFound, exceptions.Conflict)
REQUEST_SECONDS = 60.0
"""Timeout of one attempt of a request."""
SILENCE_SECONDS = 600.0
"""Seconds for which a request without a response is retried."""


class ApiError(NoResponse, RuntimeError):
    """A request to Vertex AI without a response, or a temporary failure of the request."""


def connect(service: Any, region: str) -> Any:
    """Return a client of a service of Vertex AI.

    Args:
      service: the class of the client, such as JobServiceClient.
      region: the Google Cloud region, such as `europe-west1`.

    Raises:
      InputError: there are no credentials.
    """
    try:
        return service(client_options={"api_endpoint": f"{region}-aiplatform.googleapis.com"})
    except DefaultCredentialsError as error:
        raise InputError(f"Vertex AI {credentials_problem(error)}") from None


def location(project: str | None, region: str | None) -> str:
    """Return the resource name of a region, the parent of everything that is created there.

    Args:
      project: the Google Cloud project.
      region: the Google Cloud region.
    """
    return f"projects/{project or ''}/locations/{region or ''}"


def retrying() -> dict[str, Any]:
    """Return the keyword arguments with which a client's method retries a read-only request.

    The request is retried for SILENCE_SECONDS, and each retry is logged.
    """

    def log(error: Exception) -> None:
        logging.warning("No response from Vertex AI; retrying: %s", error)

    retry = Retry(
        if_exception_type(*TRANSIENT),
        initial=1.0,
        maximum=30.0,
        timeout=SILENCE_SECONDS,
        on_error=log,
    )
    return {"retry": retry, "timeout": REQUEST_SECONDS}


@contextlib.contextmanager
def errors_in_one_line(action: str) -> Iterator[None]:
    """Convert the exceptions of the client in this context to exceptions of one line.

    Args:
      action: the purpose of the request, as an infinitive such as `upload the model`.

    Raises:
      InputError: the API refuses the request.
      ApiError: the API does not respond, or a quota is exceeded.
    """
    try:
        yield
    except (exceptions.Forbidden, exceptions.Unauthorized) as error:
        raise InputError(
            f"Vertex AI denies the permission to {action}: {error} This requires "
            "roles/aiplatform.user in vertex.project, and roles/iam.serviceAccountUser on the "
            "account in vertex.service_account"
        ) from None
    except exceptions.TooManyRequests as error:
        raise ApiError(f"Vertex AI has no quota to {action}: {error}") from None
    except _REFUSED as error:
        raise InputError(f"Vertex AI refuses to {action}: {error}") from None
    except (exceptions.GoogleAPICallError, exceptions.RetryError, GoogleAuthError) as error:
        raise ApiError(f"Vertex AI failed to {action}: {error}") from None
