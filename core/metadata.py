"""The connection to ML Metadata: a SQLite file by default, or MySQL for a team."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, unquote, urlsplit

from core.errors import ConfigError

if TYPE_CHECKING:
    from ml_metadata import MetadataStore
    from ml_metadata.proto.metadata_store_pb2 import ConnectionConfig

PASSWORD_VARIABLE = "MYSQL_PASSWORD"
_MYSQL_PORT = 3306


def open_store(location: str) -> MetadataStore:
    """Return a connection to ML Metadata. A missing file is created.

    Raises:
      ConfigError: `location` is not usable, is no database of ML Metadata, or is not reachable.
    """
    from ml_metadata import MetadataStore
    from ml_metadata.errors import StatusError

    try:
        return MetadataStore(connection_config(location))
    except (RuntimeError, StatusError) as error:
        # The messages of SQLite and MySQL contain the whole query.
        reason = str(error).removeprefix("Error when executing query: ").partition(" query:")[0]
        raise ConfigError(
            f"paths.metadata: {without_password(location)} cannot be opened: {reason}. Set a file "
            "of ML Metadata, or a MySQL server that runs"
        ) from None


def without_password(location: str) -> str:
    """Return `paths.metadata` without the user and the password."""
    return location.rpartition("@")[2] if "://" in location else location


def connection_config(location: str) -> ConnectionConfig:
    """Return the connection for `paths.metadata`. The folder of a file must exist.

    `location` is a file path, or mysql://USER@HOST[:PORT]/DATABASE. The password is read from the
    URL or, preferably, from $MYSQL_PASSWORD.

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
      ConfigError: `location` is another URL, lacks the user, the host or the database, or has a
        wrong port.
    """
    try:
        url = urlsplit(location)
        has_parts = bool(url.hostname and url.username and url.path.strip("/"))
        is_mysql = url.scheme == "mysql" and has_parts and url.port != 0
    except ValueError:  # A bracket has no partner, or the port is not a number up to 65535.
        is_mysql = False
    if not is_mysql:
        # The message leaves out the rest of the URL, which may contain a password.
        raise ConfigError(
            f"paths.metadata: {location.partition('://')[0]}://… is not supported; set a file path "
            "or mysql://USER@HOST[:PORT]/DATABASE"
        )
    return url
