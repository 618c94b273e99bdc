"""The Application Default Credentials of Google Cloud, and the remedies if they are missing."""

from __future__ import annotations

import os
from collections.abc import Sequence

import google.auth
from google.auth.credentials import Credentials

from core.errors import ConfigError

CREDENTIALS = "GOOGLE_APPLICATION_CREDENTIALS"
"""The environment variable with the path of a file with credentials."""
_NONE_FOUND = "Your default credentials were not found"
"""The beginning of google.auth's message if a machine has no credentials at all."""
_LOGIN = "run `gcloud auth application-default login`"


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
        raise ConfigError(
            f"{key}: {value} {credentials_problem(error)}; {login_remedy()}"
        ) from None
    return credentials


def login_remedy() -> str:
    """Return a clause with the remedy for missing or wrong credentials."""
    if os.environ.get(CREDENTIALS):
        # The libraries of Google Cloud prefer its file to that of a login.
        return f"set {CREDENTIALS} to another file, or unset it and {_LOGIN}"
    return f"{_LOGIN} or set {CREDENTIALS}"


def credentials_problem(error: Exception) -> str:
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
