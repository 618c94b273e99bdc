"""The connection to ML Metadata: a SQLite file by default, or MySQL for a team."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, unquote, urlsplit

from core.errors import ConfigError

if TYPE_CHECKING:
    from ml_metadata.proto.metadata_store_pb2 import ConnectionConfig

PASSWORD_VARIABLE = "MYSQL_PASSWORD"
_MYSQL_PORT = 3306


def connection_config(location: str) -> ConnectionConfig:
    """Return the connection for `paths.metadata`. The folder of a file must exist.

    Args:
      location: a file path, or mysql://USER@HOST[:PORT]/DATABASE. The password is read from the URL
        or, preferably, from $MYSQL_PASSWORD.

    Raises:
      ConfigError: `location` is another URL, or lacks the user, the host or the database.
    """
    from ml_metadata.proto import metadata_store_pb2 as mlmd

    if "://" not in location:
        sqlite = mlmd.SqliteMetadataSourceConfig(
            filename_uri=location,
            connection_mode=mlmd.SqliteMetadataSourceConfig.READWRITE_OPENCREATE,
        )
        return mlmd.ConnectionConfig(sqlite=sqlite)
    url = mysql_url(location)
    mysql = mlmd.MySQLDatabaseConfig(
        host=url.hostname,
        port=url.port or _MYSQL_PORT,
        database=url.path.strip("/"),
        user=unquote(url.username or ""),
        password=unquote(url.password or os.environ.get(PASSWORD_VARIABLE, "")),
    )
    return mlmd.ConnectionConfig(mysql=mysql)


def mysql_url(location: str) -> SplitResult:
    """Parse a `paths.metadata` that is a URL: mysql://USER@HOST[:PORT]/DATABASE.

    Raises:
      ConfigError: `location` is another URL, or lacks the user, the host or the database.
    """
    url = urlsplit(location)
    if url.scheme != "mysql" or not (url.hostname and url.username and url.path.strip("/")):
        # The message leaves out the rest of the URL, which may contain a password.
        raise ConfigError(
            f"paths.metadata: {url.scheme}://… is not supported; set a file path or "
            "mysql://USER@HOST[:PORT]/DATABASE"
        )
    return url
