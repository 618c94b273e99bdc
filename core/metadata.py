"""The connection to ML Metadata, an SQLite file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from core.errors import ConfigError

if TYPE_CHECKING:
    from ml_metadata import MetadataStore
    from ml_metadata.proto.metadata_store_pb2 import ConnectionConfig


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
        # SQLite's message contains the whole query.
        reason = str(error).removeprefix("Error when executing query: ").partition(" query:")[0]
        raise ConfigError(
            f"paths.metadata: {file} cannot be opened: {reason}. Set a file of ML Metadata"
        ) from None


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
