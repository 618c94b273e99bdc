"""Credentials for Google Cloud, or one line about what to do without."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from core.errors import ConfigError

if TYPE_CHECKING:
    from google.auth.credentials import Credentials

LOGIN = "`gcloud auth application-default login` or set GOOGLE_APPLICATION_CREDENTIALS"


def find_credentials(key: str, value: str, scopes: Sequence[str] | None = None) -> Credentials:
    """Application Default Credentials; asks no server.

    Args:
      key, value: the setting that needs them.
      scopes: what they are for.

    Raises:
      ConfigError: there are none.
    """
    import google.auth
    from google.auth.exceptions import DefaultCredentialsError

    try:
        credentials, _ = google.auth.default(scopes=scopes)
    except DefaultCredentialsError:
        raise ConfigError(
            f"{key}: {value} needs Google Cloud credentials and there are none; run {LOGIN}"
        ) from None
    return credentials
