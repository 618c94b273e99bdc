"""Reading reviews: every format there and back, and every way a line can be wrong."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from preprocessing.files import MAX_LINE_BYTES, InputError
from preprocessing.readers import (
    REASONS,
    Columns,
    Neutral,
    ReadOptions,
    Record,
    Rejected,
    Review,
    detect_format,
    detection,
    parquet_format,
    read_reviews,
)
from preprocessing.readers.csv_format import csv_records
from preprocessing.readers.labels import NEUTRAL, LabelReader, find_scale

COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "": lambda data: data,
    ".bz2": bz2.compress,
    ".gz": gzip.compress,
    ".zst": lambda data: zstandard.ZstdCompressor(write_checksum=True).compress(data),
}
POLARITY = ReadOptions(label_scale="one_two")
TEXT = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=40)
ROW = st.tuples(st.sampled_from([0, 1]), TEXT, TEXT)
ROWS = st.lists(ROW, max_size=8)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reviews")


def write(folder: Path, name: str, data: bytes | str) -> str:
    path = folder / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return str(path)


def read(path: str, options: ReadOptions | None = None) -> list[Record]:
    """All records of a file, checked for what holds for each of them."""
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
    """What rows are read back as: a blank one is rejected, the others are as they were."""
    return [
        (label, title, body) if (title + body).strip() else "no_text" for label, title, body in rows
    ]


def labels_of(records: list[Record]) -> list[int]:
    return [record.label for record in records if isinstance(record, Review)]


def got(records: list[Record]) -> list[Any]:
    return [
        record.reason if isinstance(record, Rejected) else tuple(record)[1:] for record in records
    ]


def csv_text(rows: Sequence[Sequence[Any]], ending: str = "\r\n") -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator=ending, quoting=csv.QUOTE_ALL).writerows(rows)
    return out.getvalue()


def parquet_bytes(columns: Mapping[str, Any], row_group_size: int = 3) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table(dict(columns)), out, row_group_size=row_group_size)
    return out.getvalue()


# ---- there and back, for each format through each compression

ALL_ARCHIVES = pytest.mark.parametrize("suffix", COMPRESS)
MANY = settings(max_examples=40, deadline=None)


@ALL_ARCHIVES
@MANY
@given(lines=st.lists(st.tuples(st.sampled_from([1, 2]), TEXT), max_size=8), end=st.booleans())
def test_fasttext_there_and_back(
    folder: Path, suffix: str, lines: list[tuple[int, str]], end: bool
) -> None:
    clean = [(label, text.replace("\n", " ").rstrip("\r")) for label, text in lines]
    data = "\n".join(f"__label__{label} {text}" for label, text in clean) + "\n" * (
        end and bool(clean)
    )
    path = write(folder, f"x.ft.txt{suffix}", COMPRESS[suffix](data.encode()))
    records = read(path)
    assert len(records) == len(clean)
    for record, (label, text) in zip(records, clean, strict=True):
        if isinstance(record, Review):
            assert (record.label, record.text) == (label - 1, text)
        else:
            assert not text.strip() and reasons([record]) == ["no_text"]


@ALL_ARCHIVES
@MANY
@given(rows=ROWS, ending=st.sampled_from(["\n", "\r\n"]), bom=st.booleans())
def test_csv_there_and_back(
    folder: Path, suffix: str, rows: list[tuple[int, str, str]], ending: str, bom: bool
) -> None:
    table = [("id", "label", "title", "content"), *[("7", *row) for row in rows]]
    data = ("\ufeff" * bom + csv_text(table, ending)).encode()
    path = write(folder, f"x{suffix}", COMPRESS[suffix](data))
    records = read(path, ReadOptions(label_scale="zero_one"))
    assert got(records) == expected(rows)
    # A record starts where the lines of those before it end.
    heights = [1 + (title + body).count("\n") for _, title, body in rows]
    assert [record.position for record in records] == [
        2 + sum(heights[:index]) for index in range(len(rows))
    ]


@ALL_ARCHIVES
@MANY
@given(rows=st.lists(ROW, min_size=1, max_size=8))
def test_headerless_csv_there_and_back(
    folder: Path, suffix: str, rows: list[tuple[int, str, str]]
) -> None:
    data = csv_text([(label + 1, title, body) for label, title, body in rows]).encode()
    path = write(folder, f"y{suffix}", COMPRESS[suffix](data))
    assert got(read(path)) == expected(rows)


@ALL_ARCHIVES
@MANY
@given(rows=st.lists(ROW, min_size=1, max_size=8), ascii_=st.booleans(), bom=st.booleans())
def test_jsonl_there_and_back(
    folder: Path, suffix: str, rows: list[tuple[int, str, str]], ascii_: bool, bom: bool
) -> None:
    stars = [{"overall": label * 4 + 1.0, "summary": t, "reviewText": b} for label, t, b in rows]
    lines = [json.dumps(row, ensure_ascii=ascii_) for row in stars]
    data = ("\ufeff" * bom + "\n".join(lines)).encode()
    path = write(folder, f"z{suffix}", COMPRESS[suffix](data))
    assert got(read(path)) == expected(rows)


@ALL_ARCHIVES
@MANY
@given(rows=ROWS)
def test_parquet_there_and_back(
    folder: Path, suffix: str, rows: list[tuple[int, str, str]]
) -> None:
    data = parquet_bytes(
        {
            "content": pa.array([body for _, _, body in rows], pa.string()),
            "title": pa.array([title for _, title, _ in rows], pa.large_string()),
            "label": pa.array([label for label, _, _ in rows], pa.int64()),
        }
    )
    path = write(folder, f"p{suffix}", COMPRESS[suffix](data))
    records = read(path, ReadOptions(label_scale="zero_one"))
    assert got(records) == expected(rows)
    assert [record.position for record in records] == list(range(1, len(rows) + 1))


# ---- nothing crashes, nothing is lost


@settings(max_examples=150, deadline=None)
@given(data=st.binary(max_size=200) | st.text('"{}[]:,1\\\n__label__ \r', max_size=60))
@pytest.mark.parametrize("kind", ["fasttext", "jsonl"])
def test_every_line_of_any_bytes_is_accounted_for(
    folder: Path, kind: str, data: bytes | str
) -> None:
    first = {"fasttext": b"__label__1 x\n", "jsonl": b'{"rating": 5, "text": "x"}\n'}[kind]
    content = first + (data if isinstance(data, bytes) else data.encode())
    records = read(write(folder, "any", content), ReadOptions(format=kind))
    lines = content.split(b"\n")
    assert [record.position for record in records] == [
        number for number, line in enumerate(lines, 1) if line or number < len(lines)
    ]


@settings(max_examples=400, deadline=None)
@given(data=st.text('",ab1\n\r', max_size=40))
def test_every_line_of_any_csv_is_in_one_record(data: str) -> None:
    following = 1
    for record in csv_records(io.BytesIO(data.encode())):
        position, fields = record[0], [] if isinstance(record, Rejected) else record[1]
        assert position == following
        following += 1 + sum(field.count("\n") for field in fields)
    assert following - 1 == data.count("\n") + (not data.endswith("\n") and data != "")


@settings(max_examples=150, deadline=None)
@given(data=st.binary(max_size=200), kind=st.sampled_from(["auto", *detection.FORMATS]))
def test_no_bytes_crash_a_reader(folder: Path, data: bytes, kind: str) -> None:
    for head in (b"", b"label,title,text\n0,a,b\n"):
        path = write(folder, "bytes", head + data)
        try:
            read(path, ReadOptions(format=kind))
        except InputError as error:
            assert "\n" not in str(error)


# Always the same damage: what pyarrow makes of random bytes is not what is tested here.
@settings(max_examples=100, deadline=None, derandomize=True)
@given(data=st.data())
def test_a_damaged_parquet_file_accounts_for_every_row(folder: Path, data: st.DataObject) -> None:
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


# ---- the reasons for a rejection


def test_what_is_wrong_with_fasttext_lines(folder: Path) -> None:
    lines: list[tuple[bytes, str]] = [
        (b"__label__2 fine: really", "Review"),
        (b"", "no_text"),
        (b"   ", "no_text"),
        (b"__label__1", "no_text"),
        (b"__label__1  ", "no_text"),
        (b"__label__3 three", "bad_label"),
        (b"__label__ none", "bad_label"),
        (b"no label at all", "bad_label"),
        (b" __label__1 indented", "bad_label"),
        (b"__label__1 __label__2 both", "bad_label"),
        (b"__label__1 caf\xe9", "invalid_utf8"),
        (b"__label__\xff x", "bad_label"),
        (b"__label__1 a\0b", "invalid_utf8"),
        (b"__label__1 \xed\xa0\x80", "invalid_utf8"),
        (b"__label__2 " + b"x" * MAX_LINE_BYTES, "line_too_long"),
        (b"__label__2\ttab", "Review"),
        (b"__label__positive word", "Review"),
        (b"__label__neutral word", "Neutral"),
    ]
    path = write(folder, "wrong.txt", b"\r\n".join(line for line, _ in lines))
    assert reasons(read(path)) == [reason for _, reason in lines]


def test_title_and_body_of_fasttext_lines(folder: Path) -> None:
    texts = ["A: b: c", ": starts with it", "  : blank", "no:space", "Ends: ", "a:\tb: "]
    path = write(folder, "titles.txt", "\n".join(f"__label__1 {text}" for text in texts))
    records = [record for record in read(path) if isinstance(record, Review)]
    assert [record.text for record in records] == texts
    assert [record.title for record in records] == ["A", "", "", "", "Ends", "a:\tb"]
    assert records[0].body == "b: c"


def test_what_is_wrong_with_json_lines(folder: Path) -> None:
    lines: list[tuple[bytes, str]] = [
        (b'{"overall": 5, "summary": "t", "reviewText": "b"}', "Review"),
        (b'{"overall": 3.0, "reviewText": "b"}', "Neutral"),
        (b"", "no_text"),
        (b'{"overall": 5, "reviewText": "b"', "broken_json"),
        (b'[5, "b"]', "broken_json"),
        (b"null", "broken_json"),
        (b"[" * 100_000, "broken_json"),
        (b'{"overall": ' + b"1" * 9999 + b', "reviewText": "b"}', "BAD NUMBER"),
        (b'{"overall": 1e999, "reviewText": "b"}', "bad_label"),
        (b'{"overall": NaN, "reviewText": "b"}', "bad_label"),
        (b'{"overall": 4.5, "reviewText": "b"}', "bad_label"),
        (b'{"overall": true, "reviewText": "b"}', "bad_label"),
        (b'{"overall": [5], "reviewText": "b"}', "bad_label"),
        (b'{"overall": null, "reviewText": "b"}', "bad_label"),
        (b'{"reviewText": "b"}', "bad_label"),
        (b'{"overall": "\\ud800", "reviewText": "b"}', "bad_label"),
        (b'{"overall": 5, "summary": " ", "reviewText": null}', "no_text"),
        (b'{"overall": 5}', "no_text"),
        (b'{"overall": 5, "reviewText": "\\ud800"}', "invalid_utf8"),
        (b'{"overall": 5, "summary": "\\udfff", "reviewText": "b"}', "invalid_utf8"),
        (b'{"overall": 5, "reviewText": "\\u0000"}', "invalid_utf8"),
        (b'{"overall": 5, "reviewText": "\xff"}', "invalid_utf8"),
        (b'{"overall": 5, "reviewText": "\0"}', "invalid_utf8"),
        (b'{"overall": 5, "reviewText": {"a": "b"}}', "broken_json"),
        (b'{"overall": 5, "reviewText": [["b"]]}', "broken_json"),
        (b'{"overall": 5, "reviewText": "' + b"x" * MAX_LINE_BYTES + b'"}', "line_too_long"),
    ]
    path = write(folder, "wrong.jsonl", b"\n".join(line for line, _ in lines))
    found = reasons(read(path))
    # Newer Pythons refuse to read a number that long, older ones read it.
    at = next(index for index, (_, reason) in enumerate(lines) if reason == "BAD NUMBER")
    assert found.pop(at) in ("bad_label", "broken_json")
    assert found == [reason for _, reason in lines if reason != "BAD NUMBER"]


def test_values_that_are_not_strings_become_text(folder: Path) -> None:
    titles = [None, 5, 1.5, True, ["a", None, 2], "\ud83d\ude00"]
    lines = [json.dumps({"rating": "5.0", "title": title, "text": "b"}) for title in titles]
    records = read(write(folder, "types.jsonl", "\n".join(lines)))
    found = [record.title for record in records if isinstance(record, Review)]
    assert found == ["", "5", "1.5", "true", "a  2", "\U0001f600"]


def test_what_is_wrong_with_csv_records(folder: Path) -> None:
    records: list[tuple[bytes, list[str]]] = [
        (b"Score,Summary,Text", []),
        (b'5,t,"two\nlines"', ["Review"]),
        (b"3,t,b", ["Neutral"]),
        (b"", ["no_text"]),
        (b'5, ,""', ["no_text"]),
        (b"nan,t,b", ["bad_label"]),
        (b"7,t,b", ["bad_label"]),
        (b",t,b", ["bad_label"]),
        (b"5,t", ["broken_csv"]),
        (b"5,t,b,more", ["broken_csv"]),
        (b'5,"t"t,b', ["broken_csv"]),
        (b"5,a\rb,c", ["broken_csv"]),
        (b'5,"a\n\xff\n",c', ["invalid_utf8"]),
        (b'5,"a\n\0",c', ["invalid_utf8"]),
        (b'5,"a ""quoted"" word",c', ["Review"]),
        (b"5,t," + b"x" * (MAX_LINE_BYTES + 1), ["line_too_long"]),
        (b"Score,Summary,Text", ["bad_label"]),
        (b"1,a,b", ["Review"]),
    ]
    path = write(folder, "wrong.csv", b"\r\n".join(line for line, _ in records))
    found = read(path)
    assert reasons(found) == [reason for _, expect in records for reason in expect]
    assert isinstance(found[0], Review) and found[0].body == "two\nlines"


@pytest.mark.parametrize("lines_after", [3, 30_000])
def test_an_open_quote_costs_its_own_line(folder: Path, lines_after: int) -> None:
    after = "".join(f"5,t,number {number} {'x' * 40}\n" for number in range(lines_after))
    for open_quote in ('5,"never closed,b\n', '"5,t,b\n', '5,t,"\n'):
        path = write(folder, "open.csv", "rating,title,text\n1,t,b\n" + open_quote + after)
        found = read(path)
        assert reasons(found) == ["Review", "broken_csv", *["Review"] * lines_after]
        assert found[1].position == 3


def test_an_open_quote_that_a_later_line_closes(folder: Path) -> None:
    content = 'rating,title,text\n5,"open,b\n4,"good","fine"\n1,t,b\n'
    found = read(write(folder, "closed.csv", content))
    assert reasons(found) == ["broken_csv", "Review", "Review"]


def test_a_csv_field_as_long_as_a_line_may_be(folder: Path) -> None:
    body = "x" * (MAX_LINE_BYTES - 20)
    found = read(write(folder, "long.csv", f"rating,text\n5,{body}\n1,b\n"))
    assert reasons(found) == ["Review", "Review"]


def test_an_overlong_line_inside_an_open_quote(folder: Path) -> None:
    content = 'rating,title,text\n5,"open,b\n' + "x" * (MAX_LINE_BYTES + 1) + "\n1,t,b\n"
    found = read(write(folder, "both.csv", content))
    assert reasons(found) == ["broken_csv", "line_too_long", "Review"]


def test_what_is_wrong_with_parquet_rows(folder: Path) -> None:
    long = "x" * MAX_LINE_BYTES
    bad = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff")]
    )
    data = parquet_bytes(
        {
            "rating": [5.0, 3.0, None, math.nan, 1.0, 4.5, 5.0, 2.0, 5.0],
            "title": [None, "t", "t", "t", "t", "t", None, "a\0", "t"],
            "text": pa.chunked_array([["b", "b", "b", "b"], bad, ["b", "", "b", long]]),
        }
    )
    expect = ["Review", "Neutral", "bad_label", "bad_label", "invalid_utf8", "bad_label"]
    expect += ["no_text", "invalid_utf8", "line_too_long"]
    assert reasons(read(write(folder, "wrong.parquet", data))) == expect


@pytest.mark.parametrize(
    ("label", "text"),
    [
        (pa.array([True, False]), pa.array([b"a", b"\xff"], pa.binary())),
        (pa.array(["pos", "neg"]).dictionary_encode(), pa.array(["a", None]).dictionary_encode()),
        (pa.array([Decimal(1), Decimal(0)]), pa.array([["a", "b"], []])),
        (pa.array([1, 0], pa.uint8()), pa.array([7, None])),
        (pa.array([1, 0]), pa.array([{"a": 1}, None])),
    ],
)
def test_parquet_types(folder: Path, label: pa.Array, text: pa.Array) -> None:
    found = read(write(folder, "types.parquet", parquet_bytes({"label": label, "text": text})))
    assert len(found) == 2
    assert isinstance(found[0], Review if not pa.types.is_struct(text.type) else Rejected)
    assert reasons(found[1:])[0] in ("no_text", "invalid_utf8")


def test_the_rows_of_a_damaged_row_group_are_rejected(folder: Path) -> None:
    body = [f"{number} " + "some text " * 200 for number in range(30)]
    data = bytearray(parquet_bytes({"rating": [5] * 30, "text": body}, row_group_size=10))
    file = pq.ParquetFile(io.BytesIO(bytes(data)))
    start = file.metadata.row_group(1).column(1).dictionary_page_offset
    data[start : start + 40] = b"\xff" * 40
    found = read(write(folder, "group.parquet", bytes(data)))
    assert reasons(found) == ["Review"] * 10 + ["corrupt_archive"] * 10 + ["Review"] * 10
    assert "damaged row group 2" in str(found[10])


def test_rows_that_pyarrow_leaves_out_are_rejected(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(folder, "few.parquet", parquet_bytes({"rating": [1, 5], "text": ["a", "b"]}))
    options = ReadOptions()
    monkeypatch.setattr(parquet_format, "_rows", lambda *_: iter([{"rating": [5], "text": ["a"]}]))
    assert reasons(read(path, options)) == ["Review", "corrupt_archive"]


LINES = {
    "fasttext": "".join(f"__label__{n % 2 + 1} title {n}: body {n * n}\n" for n in range(3000)),
    "jsonl": "".join(f'{{"rating": {n % 2 * 4 + 1}, "text": "b {n * n}"}}\n' for n in range(3000)),
    "csv": "1,first,review\n" + "".join(f'{n % 2 + 1},t {n},"a\nb"\n' for n in range(3000)),
}


@pytest.mark.parametrize("suffix", [suffix for suffix in COMPRESS if suffix])
@pytest.mark.parametrize("kind", LINES)
def test_everything_before_the_damage_is_read(folder: Path, kind: str, suffix: str) -> None:
    whole = read(write(folder, "whole", LINES[kind]))
    archive = COMPRESS[suffix](LINES[kind].encode())
    for cut in (0, 2, 5, len(archive) // 2, len(archive) - 12, len(archive) - 1):
        found = read(write(folder, f"cut.txt{suffix}", archive[:cut]))
        *before, last = found
        assert before == whole[: len(before)]
        assert reasons([last]) == ["corrupt_archive"]
        assert f"byte {cut:,} of the compressed file" in str(last)
        if before and len(before) < len(whole):
            assert last.position == whole[len(before)].position
    # What was lost at the last cut is the archive's checksum and no content.
    assert len(before) == len(whole)


@pytest.mark.parametrize("content", ['{"rating": 5, "text": "a"}', "rating,text", "x" * 99])
def test_an_archive_damaged_in_its_first_line(folder: Path, content: str) -> None:
    archive = gzip.compress(content.encode())[:-10]
    for kind in ("auto", "fasttext", "csv", "jsonl"):
        found = read(write(folder, "early.gz", archive), ReadOptions(format=kind))
        assert reasons(found)[-1:] == ["corrupt_archive"] and len(found) <= 2


# ---- columns

CONVENTIONS = [
    ("overall", "summary", "reviewText"),
    ("rating", None, "review"),
    ("rating", "title", "text"),
    ("Score", "Summary", "Text"),
    ("reviews.rating", "reviews.title", "reviews.text"),
    ("star_rating", "review_headline", "review_body"),
    ("label", "title", "content"),
    ("label", None, "text"),
    ("label", "title", "text"),
    ("LABEL", "Title", "TEXT"),
]


def as_file(kind: str, columns: Mapping[str, Any]) -> bytes:
    if kind == "parquet":
        return parquet_bytes(columns)
    rows = list(zip(*columns.values(), strict=True))
    if kind == "csv":
        return csv_text([list(columns), *rows]).encode()
    return "\n".join(json.dumps(dict(zip(columns, row, strict=True))) for row in rows).encode()


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize(("label", "title", "text"), CONVENTIONS)
def test_columns_are_found(
    folder: Path, kind: str, label: str, title: str | None, text: str
) -> None:
    columns: dict[str, list[Any]] = {"id": [7, 8], text: ["a", "b"], "other": ["x", "y"]}
    columns |= {title: ["t", "u"]} if title else {}
    columns |= {label: [1, 5]}
    path = write(folder, "columns", as_file(kind, columns))
    layout = detect_format(path, ReadOptions())
    assert layout.format == kind and layout.columns == Columns(label, title, text)
    titles = ("t", "u") if title else ("", "")
    assert [tuple(record) for record in read(path)] == [
        (1 + (kind == "csv"), 0, titles[0], "a"),
        (2 + (kind == "csv"), 1, titles[1], "b"),
    ]


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_columns_that_are_told(folder: Path, kind: str) -> None:
    columns = {"stars": [1, 5], "rating": [5, 1], "head": ["h", "i"], "text": ["a", "b"]}
    path = write(folder, "told", as_file(kind, columns | {"title": ["t", "u"]}))
    for told, expect in [
        (ReadOptions(), Columns("rating", "title", "text")),
        (ReadOptions(label="stars"), Columns("stars", "title", "text")),
        (ReadOptions(label="stars", text="head"), Columns("stars", None, "head")),
        (ReadOptions(title="head"), Columns("rating", "head", "text")),
        (ReadOptions(text="head"), Columns("rating", "title", "head")),
    ]:
        assert detect_format(path, told).columns == expect
    for setting in ("label", "title", "text"):
        with pytest.raises(InputError) as error:
            read_reviews(path, ReadOptions(**{setting: "Stars"}))
        one_line(error, path, f"data.columns.{setting}", "'Stars'", "stars, rating, head, text")


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_columns_that_are_not_found(folder: Path, kind: str) -> None:
    path = write(folder, f"unknown.{kind}", as_file(kind, {"a": [1, 5], "b": ["x", "y"]}))
    with pytest.raises(InputError) as error:
        read_reviews(path)
    one_line(error, path, "data.columns.label", "data.columns.text", "a, b")


@pytest.mark.parametrize(
    ("content", "expect"),
    [
        ('"2","title","text"\n"1","a","b"\n', [(1, 1, "title", "text"), (2, 0, "a", "b")]),
        ("1,only text\n2,more\n", [(1, 0, "", "only text"), (2, 1, "", "more")]),
        ("__label__2,t,b\n", [(1, 1, "t", "b")]),
        ("negative,t,b\n", [(1, 0, "t", "b")]),
        ('5,t,b\n2,"t\nu",b\n', [(1, 1, "t", "b"), (2, 0, "t\nu", "b")]),
        ("1,t,b\n1,t,c\n", [(1, 0, "t", "b"), (2, 0, "t", "c")]),
    ],
)
def test_csv_without_a_header(folder: Path, content: str, expect: list[Any]) -> None:
    path = write(folder, "headerless", content)
    assert [tuple(record) for record in read(path)] == expect


def test_a_broken_first_record_does_not_hide_a_headerless_file(folder: Path) -> None:
    path = write(folder, "first", '2,"a"b,c\n2,t,b\n1,t,b\n')
    assert reasons(read(path)) == ["broken_csv", "Review", "Review"]


# ---- labels


@pytest.mark.parametrize(
    ("values", "scale"),
    [
        ([1, 1, 0], "zero_one"),
        ([0, 2], "zero_one"),
        ([True, True], "zero_one"),
        ([2, 1], "one_two"),
        (["2.0", "x"], "one_two"),
        ([2, 1, 3], "stars"),
        ([5.0], "stars"),
        (["4"], "stars"),
        (["pos", "neg", None, 9, 0.5], "words"),
    ],
)
def test_the_scale_of_labels(values: list[Any], scale: str) -> None:
    assert find_scale("file", values) == scale


def test_labels_that_could_mean_anything(folder: Path) -> None:
    path = write(folder, "ones.csv", "label,text\n1,a\n1,b\n")
    with pytest.raises(InputError) as error:
        read_reviews(path)
    one_line(error, path, "data.label_scale", "zero_one, one_two")
    for scale, label in (("zero_one", 1), ("one_two", 0), ("stars", 0)):
        assert labels_of(read(path, ReadOptions(label_scale=scale))) == [label] * 2


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_the_scale_is_found_by_looking_at_the_file(folder: Path, kind: str) -> None:
    for values, labels in [
        ([1, 0, 1], [1, 0, 1]),
        ([1, 2, 1], [0, 1, 0]),
        ([1, 5, 2], [0, 1, 0]),
        (["pos", "NEG", "__label__2"], [1, 0, 1]),
    ]:
        path = write(folder, "scale", as_file(kind, {"label": values, "text": ["a", "b", "c"]}))
        assert labels_of(read(path)) == labels
        # A column that is told is looked at as well, whatever it is called.
        path = write(folder, "scale", as_file(kind, {"x": values, "text": ["a", "b", "c"]}))
        assert labels_of(read(path, ReadOptions(label="x"))) == labels


def test_what_labels_mean() -> None:
    stars = [0, 0, NEUTRAL, 1, 1]
    for spell in (int, float, str, lambda star: f" {star}.0 ", Decimal):
        reader = LabelReader("stars", "leave_out")
        assert [reader.read(spell(star)) for star in range(1, 6)] == stars  # type: ignore[operator]
        assert reader.read(spell(0)) is None and reader.read(spell(6)) is None  # type: ignore[operator]
    for scale in ("stars", "zero_one", "one_two", "words"):
        reader = LabelReader(scale, "leave_out")
        words = ["Positive", "neg", "__label__2", "__label__1", "__label__pos", "neutral"]
        assert [reader.read(word) for word in words] == [1, 0, 1, 0, 1, NEUTRAL]
        wrong: list[object] = [None, "", "good", "__label__3", "nan", [], {}, b"1"]
        wrong += [math.nan, math.inf, 4.5, 10**30]
        assert [reader.read(value) for value in wrong] == [None] * len(wrong)
    assert LabelReader("zero_one", "leave_out").read(True) == 1
    assert LabelReader("stars", "leave_out").read(True) is None


@pytest.mark.parametrize(
    ("neutral", "third"),
    [
        ("leave_out", Neutral(3)),
        ("negative", Review(3, 0, "", "b")),
        ("positive", Review(3, 1, "", "b")),
    ],
)
def test_what_three_stars_become(folder: Path, neutral: str, third: Record) -> None:
    path = write(folder, "neutral.csv", "rating,text\n1,a\n3,b\n")
    assert read(path, ReadOptions(neutral=neutral))[1] == third


# ---- which format


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("wrong-name.csv", "__label__1 a, b, c\n", "fasttext"),
        ("wrong-name.txt", '{"rating": 5, "text": "x"}\n', "jsonl"),
        ("wrong-name.json", "rating,text\n5,x\n", "csv"),
        ("first-line-broken", "garbage\n__label__1 a\n", "fasttext"),
        ("first-line-broken", '{"rating": \n\n{"rating": 5, "text": "x"}\n', "jsonl"),
        ("no-label.ft.txt", "nothing here\n", "fasttext"),
        ("bom.txt", "\ufeff__label__1 a\n", "fasttext"),
        ("empty.csv", "", "fasttext"),
    ],
)
def test_the_content_decides_before_the_name(
    folder: Path, name: str, content: str, kind: str
) -> None:
    path = write(folder, name, content)
    assert detect_format(path, ReadOptions()).format == kind
    assert len(read(path)) == content.count("\n") - (kind == "csv")


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        (b"just some text\nand more\n", ["no known format", "data.format", "fasttext, csv"]),
        (b"\xff\xfel\0a\0", ["UTF-16", "UTF-8"]),
        (b"PAR1 and nothing more", ["Parquet", "damaged"]),
        (b"PK\x03\x04 zip", ["zip"]),
        (b"\0\0\0\0", ["no known format"]),
    ],
)
def test_files_of_no_known_format(folder: Path, content: bytes, parts: list[str]) -> None:
    path = write(folder, "unknown", content)
    with pytest.raises(InputError) as error:
        read_reviews(path)
    one_line(error, path, *parts)


def test_files_that_are_not_what_is_told(folder: Path) -> None:
    array = write(folder, "array.json", '[{"rating": 5, "text": "x"},\n{"rating"\n')
    with pytest.raises(InputError) as error:
        read_reviews(array)
    one_line(error, array, "one object a line")
    for kind, content in (("jsonl", "a,b\n"), ("csv", "__label__1 x\n"), ("parquet", "a")):
        path = write(folder, "other", content)
        with pytest.raises(InputError) as error:
            read_reviews(path, ReadOptions(format=kind))
        one_line(error, path)
    for name in ("cut.parquet", "empty.parquet.gz"):
        with pytest.raises(InputError) as error:
            read_reviews(write(folder, name, b""))
        one_line(error, name)
    with pytest.raises(InputError) as error:
        read_reviews(str(folder / "missing.csv"))
    one_line(error, "missing.csv", "cannot be opened")


def test_options_that_do_not_exist(folder: Path) -> None:
    path = write(folder, "fine.csv", "rating,text\n5,x\n")
    for setting in ("format", "label_scale", "neutral"):
        with pytest.raises(InputError) as error:
            read_reviews(path, ReadOptions(**{setting: "nonsense"}))
        one_line(error, f"data.{setting}", "'nonsense'")


def test_a_file_larger_than_the_head_that_is_looked_at(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(detection, "_HEAD", 1000)
    rows = [(index % 2, "t", 'a\n"b"' * 9) for index in range(200)]
    path = write(folder, "large.csv", csv_text([("label", "title", "text"), *rows]))
    assert got(read(path)) == rows


def test_parquet_batches(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_format, "_ROWS", 7)
    table = {"rating": [1, 5] * 50, "text": [str(number) for number in range(100)]}
    path = write(folder, "batches.parquet", parquet_bytes(table, row_group_size=30))
    assert got(read(path)) == [(number % 2, "", str(number)) for number in range(100)]
