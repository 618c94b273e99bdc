"""Where ML Metadata is kept: a SQLite file by default, MySQL for a team."""

from __future__ import annotations

import os
from urllib.parse import unquote

from tfx.orchestration import metadata

from platforms.local.places import make_folder, mysql_url

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
        make_folder("paths.metadata", os.path.dirname(location))
        return metadata.sqlite_metadata_connection_config(location)
    url = mysql_url(location)
    return metadata.mysql_metadata_connection_config(
        host=url.hostname,
        port=url.port or _MYSQL_PORT,
        database=url.path.strip("/"),
        username=unquote(url.username or ""),
        password=unquote(url.password or os.environ.get(PASSWORD_VARIABLE, "")),
    )
