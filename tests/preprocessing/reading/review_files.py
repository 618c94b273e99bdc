"""Review files of every format for the tests of the readers, and the expected records."""

import bz2
import csv
import gzip
import io
import json
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import settings
from hypothesis import strategies as st

from preprocessing.reading.detect import inspect
from preprocessing.reading.layouts import _with_scale
from preprocessing.reading.pieces import cut_file
from preprocessing.reading.read import read_batches
from preprocessing.reading.records import ReadOptions, Rejected

COMPRESS = {
    "": lambda data: data,
    ".bz2": bz2.compress,
    ".gz": gzip.compress,
    ".zst": lambda data: zstandard.ZstdCompressor(write_checksum=True).compress(data),
}
NEEDS_BZCAT = pytest.mark.skipif(
    shutil.which("bzcat") is None, reason="bzcat, a program of bzip2, is not installed"
)
ZERO_ONE = {"0": 0, "1": 1}
ONE_TWO = {"1": 0, "2": 1}
STARS = {"1": 0, "2": 0, "3": None, "4": 1, "5": 1}
TEXT = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=40)
ROW = st.tuples(st.sampled_from([0, 1]), TEXT, TEXT)
ROWS = st.lists(ROW, max_size=8)
SUFFIXES = st.sampled_from(list(COMPRESS))
BLANK = re.compile(r"[\s\xad\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]*")
WRITTEN = {"nan", "nat", "null", "(null)", "[null]", "<null>", "<na>", "#n/a", "#null!", r"\n"}
MISSING = WRITTEN | {"none", "nil", "na", "n/a"}
"""The words for a missing title; those of WRITTEN are no text either."""
MANY = settings(max_examples=80)
POOL = ThreadPoolExecutor(2)


class Review(NamedTuple):
    position: int
    label: int
    text: str


class Neutral(NamedTuple):
    position: int


def write(folder, name, data=b"x"):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return str(path)


def detect_format(path, options=ReadOptions()):  # noqa: B008 - it is immutable
    """Return the layout of the only file of an input."""
    return _with_scale([inspect(path, options)], options)[0]


def read(path, options=None):
    """Return all records of a file in their order, after checks that apply to every record."""
    found = []
    for piece in cut_file(path, detect_format(path, options or ReadOptions())):
        before = len(found) if piece.number else 0
        for batch in read_batches(piece, POOL):
            for record in records(batch):
                found.append(record._replace(position=before + record.position))
    found.sort(key=lambda record: record.position)
    assert len({record.position for record in found}) == len(found)
    return found


def records(batch):
    """Return the reviews, the rejected lines and the neutral reviews of a batch."""
    rows = zip(batch.positions, batch.labels, batch.texts, strict=True)
    reviews = [Review(position, label, text.decode()) for position, label, text in rows]
    assert all(review.label in (0, 1) and review.text.strip() for review in reviews)
    assert all(len(line.detail) <= 200 and line.detail.isprintable() for line in batch.rejected)
    found = [*reviews, *batch.rejected, *map(Neutral, batch.neutrals)]
    assert len(found) == batch.lines
    return found


def reasons(records):
    return [
        record.reason if isinstance(record, Rejected) else type(record).__name__
        for record in records
    ]


def one_line(error, *parts):
    message = str(error.value)
    assert "\n" not in message
    for part in parts:
        assert part in message


def expected(rows):
    """Return the expected label and text of rows; blank rows are rejected."""
    found = []
    for label, title, body in rows:
        has_title = not BLANK.fullmatch(title) and title.strip().lower() not in MISSING
        body = "" if body.strip().lower() in WRITTEN else body
        is_review = has_title or not BLANK.fullmatch(body)
        found.append((label, f"{title}: {body}" if has_title else body) if is_review else "no_text")
    return found


def labels_of(records):
    return [record.label for record in records if isinstance(record, Review)]


def got(records):
    return [
        record.reason if isinstance(record, Rejected) else tuple(record)[1:3] for record in records
    ]


def csv_text(rows, ending="\r\n", separator=","):
    out = io.StringIO()
    csv.writer(out, delimiter=separator, lineterminator=ending, quoting=csv.QUOTE_ALL).writerows(
        rows
    )
    return out.getvalue()


def parquet_bytes(columns, row_group_size=3):
    out = io.BytesIO()
    pq.write_table(pa.table(dict(columns)), out, row_group_size=row_group_size)
    return out.getvalue()


def as_file(kind, columns):
    """Return a file of the kind csv, jsonl or parquet with these columns."""
    if kind == "parquet":
        return parquet_bytes(columns, 100)
    rows = list(zip(*columns.values(), strict=True))
    if kind == "csv":
        return csv_text([list(columns), *rows]).encode()
    return "".join(json.dumps(dict(zip(columns, row, strict=True))) + "\n" for row in rows).encode()
