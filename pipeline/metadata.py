"""Where ML Metadata is kept: a SQLite file by default, MySQL for a team."""

from __future__ import annotations

import os
from urllib.parse import unquote, urlsplit

from tfx.orchestration import metadata

from pipeline.settings_file import ConfigError

PASSWORD_VARIABLE = "MYSQL_PASSWORD"
_MYSQL_PORT = 3306


def connection_config(location: str) -> metadata.ConnectionConfigType:
    """`paths.metadata` -> MLMD connection.

    Args:
      location: a file path, or mysql://USER@HOST[:PORT]/DATABASE; the password is taken from
        the URL or, better, from $MYSQL_PASSWORD.

    Raises:
      ConfigError: a URL of another kind, or one that lacks user, host or database.
    """
    if "://" not in location:
        os.makedirs(os.path.dirname(location), exist_ok=True)
        return metadata.sqlite_metadata_connection_config(location)
    url = urlsplit(location)
    database = url.path.strip("/")
    if url.scheme != "mysql" or not (url.hostname and url.username and database):
        raise ConfigError(
            f"paths.metadata: {url.scheme}://… is not usable, give a file path "
            "or mysql://USER@HOST[:PORT]/DATABASE"
        )
    return metadata.mysql_metadata_connection_config(
        host=url.hostname,
        port=url.port or _MYSQL_PORT,
        database=database,
        username=unquote(url.username),
        password=unquote(url.password or os.environ.get(PASSWORD_VARIABLE, "")),
    )
