"""Clients of the Vertex AI API, and its errors in one line."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from absl import logging
from google.api_core import exceptions
from google.api_core.retry import Retry, if_exception_type
from google.auth.exceptions import DefaultCredentialsError, GoogleAuthError, TransportError

from core.errors import InputError

TRANSIENT = (
    exceptions.DeadlineExceeded,
    exceptions.InternalServerError,
    exceptions.ServiceUnavailable,
    exceptions.TooManyRequests,
    exceptions.Unknown,
    TransportError,
)
"""Errors after which the same question may be answered."""
_REFUSED = (exceptions.BadRequest, exceptions.NotFound, exceptions.Conflict)
REQUEST_SECONDS = 60.0
SILENCE_SECONDS = 600.0
"""Seconds for which a question without an answer is repeated."""


class ApiError(RuntimeError):
    """Vertex AI does not answer, or cannot do now what it is asked for."""


def connect(service: Any, region: str) -> Any:
    """Return a client of `service`, a class such as JobServiceClient.

    Raises:
      InputError: there are no credentials.
    """
    try:
        return service(client_options={"api_endpoint": f"{region}-aiplatform.googleapis.com"})
    except DefaultCredentialsError as error:
        raise InputError(f"Vertex AI needs credentials: {error}") from None


def retrying() -> dict[str, Any]:
    """Return the arguments for a request that changes nothing: it is repeated for a while."""

    def log(error: Exception) -> None:
        logging.warning("No answer from Vertex AI, trying again: %s", one_line(error))

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
    """Replace what the client raises in this context.

    Args:
      action: for the message, such as `start the training`.

    Raises:
      InputError: the API refuses the request.
      ApiError: it does not answer, or a quota is used up.
    """
    try:
        yield
    except (exceptions.Forbidden, exceptions.Unauthorized) as error:
        raise InputError(
            f"Vertex AI does not allow this step to {action}: {one_line(error)} The account in "
            "vertex.service_account needs roles/aiplatform.user, and roles/iam.serviceAccountUser "
            "on itself"
        ) from None
    except exceptions.TooManyRequests as error:
        raise ApiError(f"No quota to {action}: {one_line(error)}") from None
    except _REFUSED as error:
        raise InputError(f"Vertex AI refuses to {action}: {one_line(error)}") from None
    except (exceptions.GoogleAPICallError, exceptions.RetryError, GoogleAuthError) as error:
        raise ApiError(f"Vertex AI did not {action}: {one_line(error)}") from None


def one_line(error: Exception) -> str:
    """Return the message of an error of the client without line breaks."""
    if isinstance(error, exceptions.RetryError):
        # Its own message has the timeout alone, and not what the last answer was.
        return " ".join(str(error).split())
    return " ".join(str(getattr(error, "message", None) or error).split())
