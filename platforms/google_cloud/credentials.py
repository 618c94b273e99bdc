"""Credentials for Google Cloud, or an error of one line that contains the remedy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from core.errors import ConfigError

if TYPE_CHECKING:
    from google.auth.credentials import Credentials

LOGIN = "`gcloud auth application-default login` or set GOOGLE_APPLICATION_CREDENTIALS"


def find_credentials(key: str, value: str, scopes: Sequence[str] | None = None) -> Credentials:
    """Return the Application Default Credentials, without a request to a server.

    The setting `key` with the value `value` requires them.

    Raises:
      ConfigError: there are no credentials.
    """
    import google.auth
    from google.auth.exceptions import DefaultCredentialsError

    try:
        credentials, _ = google.auth.default(scopes=scopes)
    except DefaultCredentialsError:
        raise ConfigError(
            f"{key}: {value} requires Google Cloud credentials, and there are none; run {LOGIN}"
        ) from None
    return credentials
