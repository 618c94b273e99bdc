"""The connection to ML Metadata, an SQLite file."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

from core.errors import ConfigError, UserError

if TYPE_CHECKING:
    from ml_metadata import MetadataStore
    from ml_metadata.proto.metadata_store_pb2 import ConnectionConfig

_QUERY = "Error when executing query: "
"""The beginning of SQLite's message in an error of ML Metadata, which ends with the whole query."""
_LEAST = 1 << 20
"""The number of free bytes below which a disk counts as full."""


def open_store(file: str) -> MetadataStore:
    """Return a connection to ML Metadata.

    Args:
      file: the local path of the SQLite file, the setting `paths.metadata`. The file and its folder
        are created if they are missing.

    Raises:
      ConfigError: the file is not one of ML Metadata, or cannot be opened.
      OSError: the folder cannot be created.
    """
    from ml_metadata import MetadataStore
    from ml_metadata.errors import StatusError

    try:
        return MetadataStore(connection_config(file))
    except (RuntimeError, StatusError) as error:
        reason = _reason(error) or str(error)
        remedy = _space(file) or "Set a file of ML Metadata"
        raise ConfigError(f"paths.metadata: {file} cannot be opened: {reason}. {remedy}") from None


@contextlib.contextmanager
def named_errors(file: str) -> Iterator[None]:
    """Name the file in the errors of SQLite in this context; other errors propagate.

    Args:
      file: the local path of the SQLite file.

    Raises:
      UserError: SQLite could not read or write the file, as on a full disk.
    """
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        reason = _reason(error)
        if reason is None:
            raise
        remedy = _space(file) or "Check its disk, and whether other processes write to the file"
        raise UserError(f"paths.metadata: {file} cannot be used: {reason}. {remedy}") from error


def _reason(error: Exception) -> str | None:
    """Return the message of SQLite in an error of ML Metadata without the query; None if none."""
    _, is_found, rest = str(error).partition(_QUERY)
    return rest.partition(" query:")[0] if is_found else None


def _space(file: str) -> str:
    """Return a sentence about a full disk; empty if the disk of a file has space.

    After a failed write, ML Metadata may report another error, such as that of a missing
    transaction.
    """
    try:
        free = shutil.disk_usage(os.path.dirname(file)).free
    except OSError:
        return ""
    return f"Its disk has only {free:,} bytes left; free space there" if free < _LEAST else ""


def last_execution(store: MetadataStore) -> int:
    """Return the greatest id of an execution; 0 if there is none.

    Args:
      store: the result of `open_store`.
    """
    from ml_metadata import ListOptions, OrderByField

    options = ListOptions(limit=1, order_by=OrderByField.ID, is_asc=False)
    found = store.get_executions(list_options=options)
    return int(found[0].id) if found else 0


def connection_config(file: str) -> ConnectionConfig:
    """Return the configuration with which TFX connects to ML Metadata.

    Args:
      file: the local path of the SQLite file, whose folder is created if it is missing.

    Raises:
      OSError: the folder cannot be created.
    """
    from ml_metadata.proto import metadata_store_pb2 as mlmd

    os.makedirs(os.path.dirname(file), exist_ok=True)
    sqlite = mlmd.SqliteMetadataSourceConfig(
        filename_uri=file,
        connection_mode=mlmd.SqliteMetadataSourceConfig.READWRITE_OPENCREATE,
    )
    return mlmd.ConnectionConfig(sqlite=sqlite)
