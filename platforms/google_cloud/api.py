"""Credentials for Google Cloud, and clients of the Vertex AI API with retries and short errors."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from typing import Any

import google.auth
from absl import logging
from google.api_core import exceptions
from google.api_core.retry import Retry, if_exception_type
from google.auth.credentials import Credentials
from google.auth.exceptions import DefaultCredentialsError, GoogleAuthError, TransportError

from core.errors import ConfigError, InputError
from platforms.follow import NoResponse

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
CREDENTIALS = "GOOGLE_APPLICATION_CREDENTIALS"
"""The environment variable with the path of a file with credentials."""
_NONE_FOUND = "Your default credentials were not found"
"""The beginning of google.auth's message if a machine has no credentials at all."""
_LOGIN = "run `gcloud auth application-default login`"
REQUEST_SECONDS = 60.0
"""Timeout of one attempt of a request."""
SILENCE_SECONDS = 600.0
"""Seconds for which a request without a response is retried."""


class ApiError(NoResponse, RuntimeError):
    """A request to Vertex AI without a response, or a temporary failure of the request."""


def find_credentials(key: str, value: str, scopes: Sequence[str] | None = None) -> Credentials:
    """Return the Application Default Credentials, without a request to a server.

    Args:
      key: the setting that requires the credentials, for the message of the error.
      value: the value of this setting.
      scopes: the OAuth scopes; None: the default scopes.

    Raises:
      ConfigError: there are no credentials, or their file cannot be used.
    """
    try:
        credentials, _ = google.auth.default(scopes=scopes)
    except Exception as error:  # A wrong file can raise any exception.
        raise ConfigError(f"{key}: {value} {_problem(error)}; {login_remedy()}") from None
    return credentials


def login_remedy() -> str:
    """Return a clause with the remedy for missing or wrong credentials."""
    if os.environ.get(CREDENTIALS):
        # The libraries of Google Cloud prefer its file to that of a login.
        return f"set {CREDENTIALS} to another file, or unset it and {_LOGIN}"
    return f"{_LOGIN} or set {CREDENTIALS}"


def _problem(error: Exception) -> str:
    """Return a predicate with the reason why google.auth found no credentials.

    Args:
      error: the exception of `google.auth.default`. Its arguments may contain a second exception.
    """
    reason = ": ".join(map(str, error.args))
    if reason.startswith(_NONE_FOUND):
        return "requires Google Cloud credentials, and there are none"
    file = os.environ.get(CREDENTIALS)
    given = f"; {CREDENTIALS} is {file}" if file else ""
    found = f"{type(error).__name__}: {reason}{given}"
    return f"requires Google Cloud credentials, and those of this machine cannot be used ({found})"


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
        raise InputError(f"Vertex AI {_problem(error)}") from None


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
