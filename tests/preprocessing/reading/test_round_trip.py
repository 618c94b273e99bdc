"""Round trips of every format and compression; no content crashes a reader or loses a line."""

import io
import json

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import InputError
from preprocessing.reading import detect as detection
from preprocessing.reading.columns import COMMAS
from preprocessing.reading.formats.csv import csv_records
from preprocessing.reading.records import ReadOptions, Rejected
from tests.preprocessing.reading.review_files import (
    COMPRESS,
    MANY,
    ROW,
    ROWS,
    SUFFIXES,
    TEXT,
    ZERO_ONE,
    Review,
    csv_text,
    expected,
    got,
    parquet_bytes,
    read,
    reasons,
    write,
)


@MANY
@given(
    suffix=SUFFIXES,
    lines=st.lists(st.tuples(st.sampled_from([1, 2]), TEXT), max_size=8),
    end=st.booleans(),
)
def test_fasttext_round_trip(folder, suffix, lines, end):
    clean = [(label, text.replace("\n", " ").rstrip("\r")) for label, text in lines]
    data = "\n".join(f"__label__{label} {text}" for label, text in clean)
    # Without a line feed, carriage returns would be the ends of the lines.
    data += "\n" * bool(clean and (end or "\r" in data))
    path = write(folder, f"x.ft.txt{suffix}", COMPRESS[suffix](data.encode()))
    records = read(path)
    assert len(records) == len(clean)
    for record, (label, text) in zip(records, clean, strict=True):
        if isinstance(record, Review):
            assert (record.label, record.text) == (label - 1, text)
        elif text.startswith("__label__"):
            assert reasons([record]) == ["bad_label"]
        else:
            assert not text.strip() and reasons([record]) == ["no_text"]


@MANY
@given(
    suffix=SUFFIXES,
    rows=ROWS,
    ending=st.sampled_from(["\n", "\r\n"]),
    bom=st.booleans(),
    separator=st.sampled_from(",;|\t"),
)
def test_csv_round_trip(folder, suffix, rows, ending, bom, separator):
    table = [("id", "label", "title", "content"), *[("7", *row) for row in rows]]
    data = ("\ufeff" * bom + csv_text(table, ending, separator)).encode()
    path = write(folder, f"x{suffix}", COMPRESS[suffix](data))
    records = read(path, ReadOptions(label_map=ZERO_ONE))
    assert got(records) == expected(rows)
    # A record starts at the line after the records before it.
    heights = [1 + (title + body).count("\n") for _, title, body in rows]
    assert [record.position for record in records] == [
        2 + sum(heights[:index]) for index in range(len(rows))
    ]


def headerless(rows):
    return csv_text([(label + 1, title, body) for label, title, body in rows]).encode()


def jsonl(rows):
    stars = [{"overall": label * 4 + 1.0, "summary": t, "reviewText": b} for label, t, b in rows]
    # Every second line has escapes in place of letters beyond ASCII.
    lines = (json.dumps(row, ensure_ascii=bool(n % 2)) for n, row in enumerate(stars))
    return ("\ufeff" + "\n".join(lines)).encode()


def parquet(rows):
    labels, titles, bodies = zip(*rows, strict=True)
    stars = pa.array([label * 4 + 1 for label in labels], pa.int64())
    titles = pa.array(titles, pa.large_string())
    return parquet_bytes({"text": pa.array(bodies, pa.string()), "title": titles, "rating": stars})


@pytest.mark.parametrize("build", [headerless, jsonl, parquet])
@MANY
@given(suffix=SUFFIXES, rows=st.lists(ROW, min_size=1, max_size=8))
def test_round_trip_of_formats_with_columns(folder, build, suffix, rows):
    path = write(folder, f"y{suffix}", COMPRESS[suffix](build(rows)))
    records = read(path)
    if build is headerless:
        # In these files `\\n` is read as a line break.
        rows = [(label, *(part.replace(r"\n", "\n") for part in texts)) for label, *texts in rows]
    else:
        assert [record.position for record in records] == list(range(1, len(rows) + 1))
    assert got(records) == expected(rows)


# ---- nothing crashes, nothing is lost


@settings(max_examples=150)
@given(data=st.binary(max_size=200) | st.text('"{}[]:,1\\\n__label__ \r', max_size=60))
@pytest.mark.parametrize("kind", ["fasttext", "jsonl"])
def test_every_line_of_any_bytes_is_accounted_for(folder, kind, data):
    first = {"fasttext": b"__label__1 x\n", "jsonl": b'{"rating": 5, "text": "x"}\n'}[kind]
    content = first + (data if isinstance(data, bytes) else data.encode())
    records = read(write(folder, "any", content), ReadOptions(format=kind))
    lines = content.split(b"\n")
    assert [record.position for record in records] == [
        number for number, line in enumerate(lines, 1) if line or number < len(lines)
    ]


@settings(max_examples=300)
@given(data=st.text('",ab1\n\r', max_size=40))
def test_every_line_of_any_csv_is_in_one_record(data):
    following = 1
    for record in csv_records(io.BytesIO(data.encode()), COMMAS):
        position, fields = record[0], [] if isinstance(record, Rejected) else record[1]
        assert position == following
        following += 1 + sum(field.count("\n") for field in fields)
    assert following - 1 == data.count("\n") + (not data.endswith("\n") and data != "")


@settings(max_examples=150)
@given(data=st.binary(max_size=200), kind=st.sampled_from(["auto", *detection.FORMATS]))
def test_no_bytes_crash_a_reader(folder, data, kind):
    for head in (b"", b"label,title,text\n0,a,b\n"):
        path = write(folder, "bytes", head + data)
        try:
            read(path, ReadOptions(format=kind))
        except InputError as error:
            assert "\n" not in str(error)


@settings(max_examples=100)
@given(data=st.data())
def test_a_damaged_parquet_file_accounts_for_every_row(folder, data):
    rows = [(index % 2, f"title {index}", f"body {index}") for index in range(9)]
    labels, titles, bodies = zip(*rows, strict=True)
    table = {"label": labels, "title": titles, "text": bodies}
    content = bytearray(parquet_bytes(table))
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] = data.draw(st.integers(0, 255))
    path = write(folder, "damaged.parquet", bytes(content))
    try:
        records = read(path)
    except InputError as error:
        assert "\n" not in str(error) and path in str(error)
    else:
        index = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
        assert len(records) == len(rows) or at >= index
