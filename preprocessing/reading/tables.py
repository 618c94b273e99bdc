"""Recognise the folders of table formats, whose files also contain removed rows.

A change of such a table adds new files and an entry to its log. The old files remain, and only the
log determines which rows are current.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import NamedTuple

from core.errors import InputError
from preprocessing.reading.shell_commands import python_command, string_literal


class _Format(NamedTuple):
    name: str
    marker: str  # a glob of two names, relative to the folder of the table
    export: str  # Python with the folder, or with the newest file that matches the marker
    is_program: bool = True  # if not, `export` is a statement for Spark


_PYTHON = 'import pyarrow.parquet as pq; {}, "reviews.parquet")'
_SPARK = "spark.read.format('{}').load({{folder}}).write.parquet('reviews')"
_FORMATS = (
    _Format(
        "Delta Lake",
        "_delta_log/*.json",
        _PYTHON.format(
            "import deltalake; pq.write_table(deltalake.DeltaTable({folder}).to_pyarrow_table()"
        ),
    ),
    _Format(
        "Iceberg",
        "metadata/*.metadata.json",
        _PYTHON.format(
            "from pyiceberg.table import StaticTable as Table; "
            "pq.write_table(Table.from_metadata({newest}).scan().to_arrow()"
        ),
    ),
    _Format("Hudi", ".hoodie/hoodie.*", _SPARK.format("hudi"), is_program=False),
    _Format("Paimon", "schema/schema-[0-9]", _SPARK.format("paimon"), is_program=False),
    _Format(
        "Lance",
        "_versions/*.manifest",
        _PYTHON.format("import lance; pq.write_table(lance.dataset({folder}).to_table()"),
    ),
)


def parents(path: str) -> Iterator[str]:
    """Yield the folders of a path or URL, the innermost first."""
    while "/" in path.rstrip("/"):
        path = path.rstrip("/").rpartition("/")[0]
        yield path or "/"


def marker_globs(folder: str) -> list[str]:
    """Return the globs of the files by which the folder of a table is recognised."""
    return [f"{glob.escape(folder.rstrip('/'))}/{each.marker}" for each in _FORMATS]


def refuse_tables(files: Iterable[str], listed: Iterable[str]) -> None:
    """Check that no file belongs to a table.

    Args:
      files: paths or URLs of the files that would be read.
      listed: paths or URLs of all files, among them those that match `marker_globs`.

    Raises:
      InputError: a file belongs to a table. The message has a command that exports the table.
    """
    tables: dict[str, tuple[_Format, list[str]]] = {}
    for path in listed:
        for each in _FORMATS:
            folder, *names = path.rsplit("/", 2)
            if fnmatchcase("/".join(names), each.marker):
                tables.setdefault(folder or "/", (each, []))[1].append(path)
    if not tables:
        return
    for file in files:
        for folder in parents(file):
            if folder in tables:
                raise InputError(_message(folder, *tables[folder]))


def _message(folder: str, format: _Format, markers: list[str]) -> str:
    newest = string_literal(max(markers, key=_version))
    export = format.export.format(folder=string_literal(folder), newest=newest)
    if format.is_program:
        export = python_command(export)
    return (
        f"{folder} is a table of {format.name}, whose files also contain removed rows: export "
        f"its rows with `{export}` and read the exported files"
    )


def _version(marker: str) -> tuple[list[int], str]:
    """Return a key by which `v10.metadata.json` follows `v9.metadata.json`."""
    name = marker.rpartition("/")[2]
    return [int(digits) for digits in re.findall(r"^v?(\d+)", name)], name
