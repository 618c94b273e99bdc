"""Review files of every format for the tests of the readers, and the expected records."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import settings
from hypothesis import strategies as st

from core.errors import InputError
from preprocessing.reading.records import REASONS, ReadOptions, Record, Rejected, Review
from tests.preprocessing.reading.reference import read_reviews

COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "": lambda data: data,
    ".bz2": bz2.compress,
    ".gz": gzip.compress,
    ".zst": lambda data: zstandard.ZstdCompressor(write_checksum=True).compress(data),
}
ZERO_ONE: Mapping[str, int | None] = {"0": 0, "1": 1}
ONE_TWO: Mapping[str, int | None] = {"1": 0, "2": 1}
STARS: Mapping[str, int | None] = {"1": 0, "2": 0, "3": None, "4": 1, "5": 1}
POLARITY = ReadOptions(label_map=ONE_TWO)
TEXT = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=40)
ROW = st.tuples(st.sampled_from([0, 1]), TEXT, TEXT)
ROWS = st.lists(ROW, max_size=8)
ALL_ARCHIVES = pytest.mark.parametrize("suffix", COMPRESS)
MANY = settings(max_examples=40)


def write(folder: Path, name: str, data: bytes | str) -> str:
    path = folder / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return str(path)


def read(path: str, options: ReadOptions | None = None) -> list[Record]:
    """Return all records of a file, after checks that apply to every record."""
    records = list(read_reviews(path, options))
    for record in records:
        if isinstance(record, Rejected):
            assert record.reason in REASONS
            assert len(record.detail) <= 200 and record.detail.isprintable()
        if isinstance(record, Review):
            record.text.encode()
            assert record.label in (0, 1) and record.text.strip()
    positions = [record.position for record in records]
    assert positions == sorted(set(positions))
    return records


def reasons(records: list[Record]) -> list[str]:
    return [
        record.reason if isinstance(record, Rejected) else type(record).__name__
        for record in records
    ]


def one_line(error: pytest.ExceptionInfo[InputError], *parts: str) -> None:
    message = str(error.value)
    assert "\n" not in message
    for part in parts:
        assert part in message


def expected(rows: Sequence[tuple[int, str, str]]) -> list[Any]:
    """Return the expected label and text of rows; blank rows are rejected."""
    return [
        (label, f"{title}: {body}" if title.strip() else body)
        if (title + body).strip()
        else "no_text"
        for label, title, body in rows
    ]


def labels_of(records: list[Record]) -> list[int]:
    return [record.label for record in records if isinstance(record, Review)]


def got(records: list[Record]) -> list[Any]:
    return [
        record.reason if isinstance(record, Rejected) else tuple(record)[1:3] for record in records
    ]


def csv_text(rows: Sequence[Sequence[Any]], ending: str = "\r\n", separator: str = ",") -> str:
    out = io.StringIO()
    csv.writer(out, delimiter=separator, lineterminator=ending, quoting=csv.QUOTE_ALL).writerows(
        rows
    )
    return out.getvalue()


def parquet_bytes(columns: Mapping[str, Any], row_group_size: int = 3) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table(dict(columns)), out, row_group_size=row_group_size)
    return out.getvalue()
