"""Errors of SQLite, which name the file of ML Metadata."""

import shutil
import sqlite3
from collections import namedtuple

import pytest
from ml_metadata.proto import metadata_store_pb2 as mlmd

from core.errors import ConfigError, UserError
from core.metadata import last_execution, named_errors, open_store

FULL = "database or disk is full"


def fail(file, table):
    """Let SQLite fail at each new row of a table, as it does on a full disk."""
    with sqlite3.connect(file) as connection:
        connection.execute(
            f"CREATE TRIGGER full BEFORE INSERT ON {table} BEGIN SELECT RAISE(ABORT, '{FULL}'); END"
        )


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "metadata.sqlite"
    assert last_execution(open_store(str(path))) == 0
    return str(path)


def test_a_write_that_fails_names_the_file(file):
    fail(file, "Context")
    store = open_store(file)
    kind = store.put_context_type(mlmd.ContextType(name="run"))
    with pytest.raises(UserError) as error, named_errors(file):
        store.put_contexts([mlmd.Context(type_id=kind, name="first")])
    assert str(error.value) == (
        f"paths.metadata: {file} cannot be used: {FULL}. Check its disk, and whether other "
        "processes write to the file"
    )


def test_a_full_disk_is_named_whatever_sqlite_reports(file, monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10**9, 10**9 - 4096, 4096))
    message = r"no transaction\. Its disk has only 4,096 bytes left; free space there$"
    with pytest.raises(UserError, match=message), named_errors(file):
        raise RuntimeError("x: Error when executing query: no transaction query: COMMIT;")


def test_a_database_that_cannot_be_created_names_the_file(tmp_path):
    file = str(tmp_path / "broken.sqlite")
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE Type (id INT)")
    with pytest.raises(ConfigError, match=f"^paths.metadata: {file} cannot be opened: .*Set a f"):
        open_store(file)


def test_other_errors_propagate(file):
    for error in (ValueError("x"), ConfigError("y")):
        with pytest.raises(type(error), match=str(error)), named_errors(file):
            raise error
