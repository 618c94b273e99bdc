"""The connection to ML Metadata: a SQLite file by default, or MySQL for a team."""

from __future__ import annotations

import os
from urllib.parse import unquote

from tfx.orchestration import metadata

from platforms.local.places import make_folder, mysql_url

PASSWORD_VARIABLE = "MYSQL_PASSWORD"
_MYSQL_PORT = 3306


def connection_config(location: str) -> metadata.ConnectionConfigType:
    """Return the connection for `paths.metadata`.

    Args:
      location: a file path, or mysql://USER@HOST[:PORT]/DATABASE. The password is read from the URL
        or, preferably, from $MYSQL_PASSWORD.

    Raises:
      ConfigError: `location` is another URL, or lacks the user, the host or the database.
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
