"""Round trips of every format and compression; no content crashes a reader or loses a line."""

import io
import json
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import InputError
from preprocessing.reading.columns import COMMAS
from preprocessing.reading.file_format import FORMATS
from preprocessing.reading.formats.csv_records import csv_records
from preprocessing.reading.pieces import cut_file
from preprocessing.reading.read import read_batches
from preprocessing.reading.records import ReadOptions, Rejected
from tests.preprocessing.reading.review_files import (
    COMPRESS,
    MANY,
    POOL,
    ROW,
    ROWS,
    SUFFIXES,
    TEXT,
    ZERO_ONE,
    Review,
    csv_text,
    detect_format,
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
def test_a_fasttext_file_is_read_as_it_was_written(folder, suffix, lines, end):
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
def test_a_csv_file_is_read_as_it_was_written(folder, suffix, rows, ending, bom, separator):
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
def test_files_of_formats_with_columns_are_read_as_they_were_written(folder, build, suffix, rows):
    path = write(folder, f"y{suffix}", COMPRESS[suffix](build(rows)))
    records = read(path)
    if build is headerless:
        # In these files `\\n` is read as a line break.
        rows = [(label, *(part.replace(r"\n", "\n") for part in texts)) for label, *texts in rows]
    else:
        assert [record.position for record in records] == list(range(1, len(rows) + 1))
    assert got(records) == expected(rows)


def fasttext(rows):
    lines = ((label, f"{title} {body}".replace("\n", " ")) for label, title, body in rows)
    return "".join(f"__label__{label + 1} {text}\n" for label, text in lines).encode()


def csv_with_header(rows):
    stars = [(label * 4 + 1, title, body) for label, title, body in rows]
    return csv_text([("rating", "title", "text"), *stars], "\n").encode()


JOINED_TEXT = TEXT | st.sampled_from(["a\n\ufeffb", '\ufeff"quoted"'])


@pytest.mark.parametrize("reads_labels", [True, False])
@pytest.mark.parametrize("build", [fasttext, headerless, csv_with_header, jsonl])
@MANY
@given(
    suffix=SUFFIXES,
    files=st.lists(
        st.lists(
            st.tuples(st.sampled_from([0, 1]), JOINED_TEXT, JOINED_TEXT), min_size=1, max_size=4
        ),
        min_size=1,
        max_size=4,
    ),
    marks=st.integers(1, 2),
)
def test_byte_order_marks_of_joined_files_are_no_content(
    folder, build, reads_labels, suffix, files, marks
):
    mark = "\ufeff".encode()
    parts = [build(rows).removeprefix(mark).removesuffix(b"\n") + b"\n" for rows in files]
    options = ReadOptions(reads_labels=reads_labels)
    plain, marked = (
        read(write(folder, f"{name}.txt{suffix}", COMPRESS[suffix](data)), options)
        for name, data in (
            ("plain", b"".join(parts)),
            ("marked", (marks * mark).join([b"", *parts])),
        )
    )
    assert marked == plain


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
@given(data=st.binary(max_size=200), kind=st.sampled_from(["auto", *FORMATS]))
def test_no_bytes_crash_a_reader(folder, data, kind):
    for head in (b"", b"label,title,text\n0,a,b\n"):
        path = write(folder, "bytes", head + data)
        try:
            read(path, ReadOptions(format=kind))
        except InputError as error:
            assert "\n" not in str(error)


HEADS = {
    "fasttext": ["__label__1 x\n", ""],
    "csv": ["rating,title,text,key\n", 'rating, "title", "text", "key"\n', "1,a,b\n", "text\n"],
    "jsonl": ['{"rating": 5, "title": "t", "text": "x", "key": 1}\n'],
}
PARTS = st.sampled_from(
    [
        *("\n", "\r", "\r\n", "\0", "\ufeff", " ", ",", ";", "\t", '"', '""', ', "', '" ,', "\\"),
        *("rating,title,text,key\n", "__label__2 ", "__label__x", '{"rating": ', '{"text": ', "}"),
        *("1" * 400, "1e400", "-1", "5", "NaN", "Infinity", "[[1]]", '{"a": {}}', "null", "true"),
        *("\\ud800", "\udc80", "\xe9", "<html>", "PAR1", "sep=;\n", "a", "word "),
    ]
)


@settings(max_examples=300)
@given(
    parts=st.lists(PARTS | st.characters(), max_size=30),
    kind=st.sampled_from(list(HEADS)),
    format=st.booleans(),
    options=st.sampled_from(
        [
            *(ReadOptions(), ReadOptions(label_map=ZERO_ONE), ReadOptions(reads_labels=False)),
            *(ReadOptions(reads_labels=False, id="key"), ReadOptions(columns={"text": "key"})),
        ]
    ),
    data=st.data(),
)
def test_any_content_gives_records_or_one_line(folder, parts, kind, format, options, data):
    head = data.draw(st.sampled_from(HEADS[kind]))
    # A lone surrogate becomes a question mark, and then a byte that is not UTF-8.
    content = (head + "".join(parts)).encode("utf-8", "replace").replace(b"?", b"\xe9")
    path = write(folder, f"any.{kind}", content)
    try:
        read(path, replace(options, format=kind if format else "auto"))
    except InputError as error:
        assert "\n" not in str(error) and path in str(error)


VALUES = {
    "binary": st.binary(max_size=8),
    "decimal": st.decimals(-(10**20), 10**20, places=3),
    "double": st.floats(),
    "text": st.text(max_size=5),
    "list": st.lists(st.integers(-5, 5), max_size=3),
    "struct": st.fixed_dictionaries({"a": st.integers(0, 5)}),
    "time": st.datetimes(),
    "boolean": st.booleans(),
}


@settings(max_examples=150)
@given(
    kinds=st.fixed_dictionaries(
        {name: st.sampled_from(list(VALUES)) for name in ("label", "title", "text", "key")}
    ),
    data=st.data(),
)
def test_columns_of_any_type_in_parquet_account_for_every_row(folder, kinds, data):
    columns = {
        name: data.draw(st.lists(st.none() | VALUES[kind], min_size=3, max_size=3))
        for name, kind in kinds.items()
    }
    path = write(folder, "types.parquet", parquet_bytes(columns))
    for options in (ReadOptions(label_map=ZERO_ONE), ReadOptions(reads_labels=False, id="key")):
        try:
            assert len(read(path, options)) == 3
        except InputError as error:
            assert "\n" not in str(error) and path in str(error)


def test_bytes_that_are_no_text_may_be_ids(folder):
    ids = [bytes(range(200, 216)), b"B001", None]
    path = write(folder, "ids.parquet", parquet_bytes({"text": ["a", "b", "c"], "key": ids}))
    options = ReadOptions(reads_labels=False, id="key")
    [piece] = cut_file(path, detect_format(path, options))
    found = [value for batch in read_batches(piece, POOL) for value in batch.ids]
    assert found == [bytes(range(200, 216)).hex().encode(), b"B001", b""]


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
