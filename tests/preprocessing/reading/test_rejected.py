"""Rejected lines: every problem of a line, its reason and its detail."""

import contextlib
import csv
import gzip
import io
import json
import math
import pickle
from dataclasses import replace
from decimal import Decimal
from itertools import product
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import InputError
from preprocessing.reading.formats import csv as csv_format
from preprocessing.reading.formats import csv_records
from preprocessing.reading.formats import parquet as parquet_format
from preprocessing.reading.labels import CollectedLabels
from preprocessing.reading.pieces import MAX_LINE_BYTES, Piece, cut_file
from preprocessing.reading.read import read_batches
from preprocessing.reading.records import ReadOptions, Rejected
from tests.preprocessing.reading.review_files import (
    COMPRESS,
    POOL,
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

# ---- the reasons for a rejection


def test_rejected_fasttext_lines(folder):
    lines = [
        (b"__label__2 fine: really", "Review"),
        (b"", "no_text"),
        (b"   ", "no_text"),
        (b"__label__1", "no_text"),
        (b"__label__3 three", "bad_label"),
        (b"__label__ none", "bad_label"),
        (b"no label at all", "bad_label"),
        (b" __label__1 indented", "bad_label"),
        (b"__label__1 __label__2 both", "bad_label"),
        (b"__label__1 caf\xe9", "invalid_utf8"),
        (b"__label__\xff x", "invalid_utf8"),
        (b"__label__1 a\0b", "invalid_utf8"),
        (b"__label__1 \xed\xa0\x80", "invalid_utf8"),
        (b"__label__2 " + b"x" * (MAX_LINE_BYTES - 11), "Review"),
        (b"__label__2 " + b"x" * (MAX_LINE_BYTES - 10), "line_too_long"),
        (b"__label__2\ttab", "Review"),
        (b"__label__positive word", "Review"),
        (b"__label__neutral word", "Neutral"),
    ]
    path = write(folder, "wrong.txt", b"\r\n".join(line for line, _ in lines))
    labels = ReadOptions(label_map={"1": 0, "2": 1, "positive": 1, "neutral": None})
    assert reasons(read(path, labels)) == [reason for _, reason in lines]


def test_rejected_json_lines(folder):
    lines = [
        (b'{"overall": 5, "summary": "t", "reviewText": "b"}', "Review"),
        (b'{"overall": 3.0, "reviewText": "b"}', "Neutral"),
        (b"", "no_text"),
        (b'{"overall": 5, "reviewText": "b"', "broken_json"),
        (b'[5, "b"]', "broken_json"),
        (b"[" * 100_000, "broken_json"),
        (b'{"overall": ' + b"1" * 9999 + b', "reviewText": "b"}', "BAD NUMBER"),
        (b'{"overall": 1e999, "reviewText": "b"}', "bad_label"),
        (b'{"reviewText": "b"}', "bad_label"),
        (b'{"overall": "\\ud800", "reviewText": "b"}', "invalid_utf8"),
        (b'{"overall": 5, "summary": " ", "reviewText": null}', "no_text"),
        (b'{"overall": 5}', "no_text"),
        (b'{"overall": 5, "reviewText": "\\ud800"}', "invalid_utf8"),
        (b'{"overall": 5, "summary": "\\udfff", "reviewText": "b"}', "invalid_utf8"),
        (b'{"overall": 5, "reviewText": "\\u0000"}', "invalid_utf8"),
        (b'{"overall": 5, "reviewText": "\xff"}', "invalid_utf8"),
        (b'{"overall": 5, "reviewText": "\0"}', "broken_json"),
        (b'{"overall": 5, "reviewText": {"a": "b"}}', "wrong_type"),
        (b'{"overall": 5, "reviewText": "' + b"x" * (MAX_LINE_BYTES - 32) + b'"}', "Review"),
        (b'{"overall": 5, "reviewText": "' + b"x" * (MAX_LINE_BYTES - 31) + b'"}', "line_too_long"),
    ]
    path = write(folder, "wrong.jsonl", b"\n".join(line for line, _ in lines))
    found = reasons(read(path))
    # Newer versions of Python refuse to parse such a long number. Older versions parse it.
    at = next(index for index, (_, reason) in enumerate(lines) if reason == "BAD NUMBER")
    assert found.pop(at) in ("bad_label", "broken_json")
    assert found == [reason for _, reason in lines if reason != "BAD NUMBER"]


def test_values_that_are_not_strings_become_text(folder):
    titles = [None, 5, 1.5, True, "\ud83d\ude00"]
    lines = [json.dumps({"rating": "5.0", "title": title, "text": "b"}) for title in titles]
    records = read(write(folder, "types.jsonl", "\n".join(lines)))
    found = [record.text for record in records if isinstance(record, Review)]
    assert found == ["b", "5: b", "1.5: b", "true: b", "\U0001f600: b"]


def test_rejected_csv_records(folder):
    records = [
        (b"Score,Summary,Text", []),
        (b'5,t,"two\nlines"', ["Review"]),
        (b"3,t,b", ["Neutral"]),
        (b"", ["no_text"]),
        (b'5, ,""', ["no_text"]),
        (b"7,t,b", ["bad_label"]),
        (b",t,b", ["bad_label"]),
        (b"5,t", ["broken_csv"]),
        (b"5,t,b,more", ["broken_csv"]),
        (b'5,"t"t,b', ["broken_csv"]),
        (b"5,a\rb,c", ["Review"]),
        (b'5,"a\n\xff\n",c', ["invalid_utf8"]),
        (b'5,"a\n\0",c', ["invalid_utf8"]),
        (b'5,"a ""quoted"" word",c', ["Review"]),
        (b'5,"open,b', ["broken_csv"]),  # the next line closes the quote
        (b'4,"good","fine"', ["Review"]),
        (b"5,t," + b"x" * (MAX_LINE_BYTES - 4), ["Review"]),
        (b'5,"open,b', ["broken_csv"]),
        (b"5,t," + b"x" * (MAX_LINE_BYTES + 1), ["line_too_long"]),
        (b"Score,Summary,Text", ["repeated_header"]),
        (b"1,a,b", ["Review"]),
    ]
    path = write(folder, "wrong.csv", b"\r\n".join(line for line, _ in records))
    found = read(path)
    assert reasons(found) == [reason for _, expect in records for reason in expect]
    assert isinstance(found[0], Review) and found[0].text == "t: two\nlines"


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ('5,"a" ,b', "a blank between a quotation mark and a separator"),
        ('5,a,"b" ', "a blank between a quotation mark and the end of the line"),
        ('5,"a "good" word",b', "a single quotation mark within a quoted field"),
        ('5,"a "good" word\rx",b', "a single quotation mark within a quoted field"),
        ('5,"a,b', "a quotation mark that is not closed"),
        ('5,a, "b, c", d, "e"', "5 fields instead of 3"),
    ],
)
def test_the_detail_of_broken_csv_is_its_cause(folder, line, cause):
    path = write(folder, "cause.csv", f"rating,title,text\n5,t,b\n{line}\n1,t,b\n1,t,b\n")
    [wrong] = [record for record in read(path) if isinstance(record, Rejected)]
    assert wrong.reason == "broken_csv" and wrong.detail.startswith(f"{cause}: ")


def test_a_backslash_before_a_quote_is_the_cause_if_other_fields_end_with_a_backslash(folder):
    rows = [r'5,"a \"good\" word",b', *2 * [r'1,"C:\",b']]
    found = read(write(folder, "mixed.csv", "\n".join(["rating,title,text", *rows])))
    assert reasons(found) == ["broken_csv", "Review", "Review"]
    assert found[0].detail.startswith("a quotation mark after a backslash: ")
    assert found[1].text == "C:\\: b"


# Each is followed by a field of text.
CR_FIELDS = ["a\rb", "\ra", "a\r", "\r", 'a "quoted"\rword', "a,\rb", "a\r\nb\r\rc", "a\r\n"]


@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r\r\n"])
def test_a_carriage_return_inside_of_a_line_is_a_character(folder, quoting, ending):
    """Python's own writer leaves it without quotes if another character ends the lines."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n", quoting=quoting)
    writer.writerows([("rating", "text", "title"), *[(5, field, "t") for field in CR_FIELDS]])
    # The line breaks that end a record, and not those inside of a field.
    data = out.getvalue().replace(",t\n", f",t{ending}").replace(',"t"\n', f',"t"{ending}')
    data = data.replace("title\n", f"title{ending}").replace('title"\n', f'title"{ending}')
    found = read(write(folder, "returns.csv", data))
    assert [record.text for record in found] == [f"t: {field}" for field in CR_FIELDS]


@pytest.mark.parametrize(
    "table",
    [
        "rating,text\n------,----\n5,good\n1,-- bad --\n",
        "| rating | text |\n|:---|---:|\n| 5 | good |\n| 1 | -- bad -- |\n",
        " rating | text\n--------+------\n 5 | good\n 1 | -- bad --\n",
    ],
)
def test_a_line_of_dashes_under_a_header_is_no_review(folder, table):
    """SQL Server, Markdown and PostgreSQL write one."""
    path = write(folder, "dashes.csv", table)
    for options in (ReadOptions(), ReadOptions(reads_labels=False)):
        found = read(path, options)
        assert reasons(found) == ["repeated_header", "Review", "Review"]
        assert [record.text.strip() for record in found[1:]] == ["good", "-- bad --"]


@pytest.mark.parametrize("lines_after", [3, 20_000])
def test_an_open_quote_loses_only_its_own_line(folder, lines_after):
    after = "".join(f"5,t,number {number} {'x' * 40}\n" for number in range(lines_after))
    for open_quote in ('5,"never closed,b\n', '"5,t,b\n', '5,t,"\n'):
        path = write(folder, "open.csv", "rating,title,text\n1,t,b\n" + open_quote + after)
        found = read(path)
        assert reasons(found) == ["Review", "broken_csv", *["Review"] * lines_after]
        assert found[1].position == 3


WIDE = ['{},Title {},"a text of 24 inch', '{},"Title {},a text of 6"" or more', '"{},Title {},text']


@settings(max_examples=100)
@given(
    first=st.sampled_from(WIDE),
    lines=st.lists(
        st.tuples(st.sampled_from("12345"), st.text("ab ,1", min_size=1, max_size=9)),
        min_size=6,
        max_size=30,
    ),
    end=st.sampled_from(['{},a 24",b', '{},a,b 24"', '{},a,b "so called"']),
    after=st.integers(0, 3),
)
def test_a_quote_that_a_later_record_closes_loses_only_its_own_line(
    folder, first, lines, end, after
):
    rows = [f"{label},t,x{text.replace(',', ';')}" for label, text in lines]
    rows += [end.format(5)] + ["1,t,b"] * after
    table = "\n".join(["rating,title,text", "5,t,b", first.format(4, 4), *rows]) + "\n"
    found = read(write(folder, "closed.csv", table))
    assert [record.position for record in found] == list(range(2, 4 + len(rows)))
    assert reasons(found)[1] == "broken_csv" and found[1].detail.endswith(first.format(4, 4))
    assert "broken_csv" not in reasons(found)[2:]


def test_the_detail_of_a_csv_record_with_nul_has_the_character_of_the_file(folder):
    table = "rating,text\n5,a\0b\n4,c\rd\0\n1,x,\0\n2,e\rf\n"
    found = read(write(folder, "nul.csv", table))
    assert reasons(found) == ["invalid_utf8", "invalid_utf8", "broken_csv", "Review"]
    assert [line.detail for line in found[:2]] == [r"\x00b", r"\x00"]
    assert r"\x00" in found[2].detail and found[3].text == "e\rf"


TOPICS = {"a b": 0, "c": 1}
TASKS = [
    ("topic,text", ReadOptions(task="each", columns={"label": "topic"})),
    ("topic,text", ReadOptions(label_map=TOPICS, columns={"label": "topic"})),
    ("topic,text", ReadOptions(reads_labels=False, columns={"label": "topic"})),
    ("topic,user,text", ReadOptions(reads_labels=False)),
]


@pytest.mark.parametrize(("header", "options"), TASKS)
def test_a_quote_that_a_later_record_closes_loses_only_its_own_line_with_every_task(
    folder, header, options
):
    width = header.count(",")
    rows = [f"{label}{',u' * (width - 1)},text" for label in [*TOPICS] * 20]
    lost = [*rows[:10], rows[10].replace("text", '"text'), *rows[11:30], rows[30] + ' 24"']
    path = write(folder, "lost.csv", "\n".join([header, *lost, *rows]))
    layout = detect_format(path, options)
    if options.task == "each":
        layout = replace(layout, collected=CollectedLabels())
    batches = list(read_batches(Piece(path, layout), POOL))
    assert [line.position for batch in batches for line in batch.rejected] == [12]
    assert sum(len(batch.texts) for batch in batches) == len(lost) + len(rows) - 1


@pytest.mark.parametrize(("header", "options"), TASKS[:3])
def test_a_text_with_lines_that_begin_with_no_label_is_one_text(folder, header, options):
    table = "".join(f"Order {number},{number} pieces\n" for number in range(20))
    rows = [("topic", "text"), ("c", f"My orders:\n{table}"), ("a b", table)]
    path = write(folder, "table.csv", csv_text(rows))
    layout = replace(detect_format(path, options), collected=CollectedLabels())
    [batch] = read_batches(Piece(path, layout), POOL)
    assert batch.texts == [text.encode() for _, text in rows[1:]]


@pytest.mark.parametrize(
    "lines",
    [
        "1, good\n2, bad\n3, so so",
        "one\n5,good",
        "5,good\nas I said\n1,bad",
        "9,a\n9,b\n9,c",
        "Ratings:\n5,comfort\n3,price",
    ],
)
def test_a_text_with_lines_that_are_no_reviews_is_one_review(folder, lines):
    path = write(
        folder, "lines.csv", csv_text([("rating", "text"), (5, lines), (1, f"a\n{lines}")])
    )
    assert got(read(path)) == [(1, lines), (0, f"a\n{lines}")]


def test_a_healthy_csv_file_loses_no_record_however_long_it_is(folder):
    """The size limit applies to each record separately, also behind an open quote."""
    words = "x" * 2_000
    rows = [(n % 2, f"title {n}", f"number {n}\n{words}") for n in range(600)]
    table = csv_text([("label", "title", "text"), *rows])
    assert len(table) > MAX_LINE_BYTES
    assert got(read(write(folder, "healthy.csv", table))) == expected(rows)
    # The lines behind this quote are read as one field, up to the limit, and then read again.
    plain = "".join(f"0,t,{n}{words}\n" for n in range(600))
    found = read(write(folder, "healed.csv", 'label,title,text\n1,"open,b\n' + plain + table))
    assert reasons(found[:1]) == ["broken_csv"]
    assert got(found[1:601]) == [(0, f"t: {n}{words}") for n in range(600)]
    assert got(found[601:]) == ["repeated_header", *expected(rows)]


def test_crafted_quotes_are_not_read_again_for_ever(folder, monkeypatch):
    monkeypatch.setattr(csv_records, "_MAX_READ_AGAIN", 2_000)
    # A field is open at the end of every line, wherever reading begins.
    path = write(folder, "crafted.csv", "rating,title,text\n" + 'a",b,"c\n' * 1_000)
    assert reasons(read(path)) == ["broken_csv"] * 1_000


@pytest.mark.parametrize("reads_labels", [True, False])
@pytest.mark.parametrize(
    "again", ["rating,title,text", '\ufeff"rating",title,text', "\ufeffrating,title,text"]
)
def test_a_repeated_header_is_no_review(folder, reads_labels, again):
    path = write(folder, "joined.csv", f"\ufeffrating,title,text\n5,t,b\n{again}\r\n1,t,b\n{again}")
    found = read(path, ReadOptions(reads_labels=reads_labels))
    assert reasons(found) == ["Review", "repeated_header", "Review", "repeated_header"]
    assert [record.position for record in found] == [2, 3, 4, 5]


JOINED = [
    ("rating,title,text", "1,a,b"),
    ("Rating,TITLE,Text", "1,a,b"),
    (" rating, title, text", "1,a,b"),
    ("text,rating,title", "b,1,a"),
    ("overall,summary,reviewText", "1,a,b"),
    ("reviewText,asin,summary,overall", "b,x,a,1"),
    ("stars,text", "1,a: b"),
]


@pytest.mark.parametrize("reads_labels", [True, False])
@pytest.mark.parametrize(("header", "line"), JOINED)
def test_the_records_behind_a_header_have_its_names(folder, reads_labels, header, line):
    data = f"rating,title,text\n5,t,b\n{header}\n{line}\nrating,title,text\n5,t,b\n"
    found = read(write(folder, "joined_names.csv", data), ReadOptions(reads_labels=reads_labels))
    assert reasons(found) == [
        *["Review", "repeated_header", "Review", "repeated_header", "Review"],
    ]
    assert [record.text for record in found[::2]] == ["t: b", "a: b", "t: b"]


def test_a_header_behind_records_without_one_is_no_review(folder):
    path = write(folder, "late_header.csv", "2,t,b\nlabel,title,text\n1,t,b\n")
    assert reasons(read(path)) == ["Review", "repeated_header", "Review"]


@pytest.mark.parametrize("reads_labels", [True, False])
@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
@pytest.mark.parametrize("task", ["sentiment", "each"])
def test_the_names_of_the_columns_in_a_record_are_no_review(folder, kind, task, reads_labels):
    # A joined CSV file that a program converted has its further headers as records.
    rows = [("5", "a", "good"), ("Rating", "title", "text"), ("rating", "title", "text")]
    rows += [("1", "b", "bad")]
    records_of_rows = [dict(zip(("rating", "title", "text"), row, strict=True)) for row in rows]
    path = str(folder / f"joined.{kind}")
    if kind == "parquet":
        table = pa.Table.from_pylist(records_of_rows)
        pq.write_table(table.append_column("number", pa.array(range(len(rows)))), path)
    else:
        write(folder, "joined.jsonl", "".join(json.dumps(row) + "\n" for row in records_of_rows))
    layout = detect_format(path, ReadOptions(reads_labels=reads_labels, task=task))
    collected = CollectedLabels() if task == "each" else None
    [piece] = cut_file(path, replace(layout, collected=collected))
    batches = list(read_batches(piece, POOL))
    assert [item.reason for batch in batches for item in batch.rejected] == ["repeated_header"] * 2
    assert [text for batch in batches for text in batch.texts] == [b"a: good", b"b: bad"]
    if collected is not None and reads_labels:
        assert list(collected.names) == ["5", "1"]


def test_one_word_in_a_record_is_a_review(folder):
    words = [{"id": 1, "text": "text"}, {"id": 2, "text": "Text"}, {"id": None, "text": "Text"}]
    path = write(folder, "words.jsonl", "".join(json.dumps(word) + "\n" for word in words))
    assert reasons(read(path, ReadOptions(reads_labels=False))) == ["Review"] * 3


@pytest.mark.parametrize("reads_labels", [True, False])
def test_blanks_before_quotes_in_a_later_part_of_a_file(folder, monkeypatch, reads_labels):
    monkeypatch.setattr("preprocessing.reading.samples._HEAD", 200)
    first = "".join(f'{5 if n % 2 else 1},"title","review {n}"\n' for n in range(50))
    first += '5,"title"," ""quoted"""\n'
    later = '5, "later", "a ""good"" one"\n1, "later", "bad, and late"\n'
    path = write(folder, "later.csv", f"rating,title,text\n{first}{later}")
    *_, quoted, good, broken = read(path, ReadOptions(reads_labels=reads_labels))
    assert quoted.text == 'title:  "quoted"'
    assert good.text == 'later: a "good" one'
    assert broken.reason == "broken_csv"
    assert broken.detail.startswith("white space between a separator and a quotation mark, and 4")


@pytest.mark.parametrize("line", ["title,text,text", "5,title,text", "rating,title,a text", "Text"])
def test_a_review_of_the_words_of_a_header_is_no_header(folder, line):
    header = "rating,title,text" if "," in line else "text"
    path = write(folder, "words.csv", f"{header}\n{line}\n")
    assert reasons(read(path, ReadOptions(format="csv", reads_labels=False))) == ["Review"]


FIRST_LINES = [
    ("rating,title,text\n5,t,b\n", ReadOptions()),
    ("rating,title,text\n5,t,b\n", ReadOptions(reads_labels=False)),
    ("Text,number of votes\nb,1\n", ReadOptions(reads_labels=False)),
    ("2,t,b\n1,t,b\n", ReadOptions(label_map={"1": 0, "2": 1})),
    ("score,comment,number of votes\n5,b,1\n", ReadOptions()),
    ("kind,Body,votes\n5,b,1\n", ReadOptions(columns={"label": "kind", "text": "Body"})),
]
HEADERS = [
    ["rating", "title", "text"],
    ["reviewText", "overall"],
    ["text", "stars"],
    ["comment", "score"],
    ["Body", "kind"],
    ["number of votes", "comment", "score"],
    ["number of votes", "Text"],
    ["title", "text"],
]
SPELLINGS = [str, str.upper, " {} ".format]


@pytest.mark.parametrize(("first", "options"), FIRST_LINES)
def test_a_record_without_the_name_of_a_text_is_no_header(folder, first, options, monkeypatch):
    lines = []
    for spelled, (name, *names) in product(SPELLINGS, HEADERS):
        lines += [[spelled(name), *names], [spelled(name), *map(spelled, names)], ["b", *names]]
    path = write(folder, "headers.csv", first + csv_text(lines))
    found = read(path, options)
    assert "repeated_header" in reasons(found)
    monkeypatch.setattr(csv_format._Header, "_may_be_one", lambda *_: True)
    assert found == read(path, options)


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_numbers_that_python_cannot_convert_are_rejected(folder, kind):
    huge = {
        "jsonl": [10**400, -(10**400), 10**18, math.inf, math.nan, [1], {"a": 1}],
        "parquet": [Decimal("9" * 70), Decimal(10**18), None],
    }[kind]
    rows = [(value, "label") for value in [*huge, 5, 1]] + [(5, value) for value in huge]
    if kind == "jsonl":
        data = "".join(json.dumps({"rating": label, "text": text}) + "\n" for label, text in rows)
    else:
        label = pa.array([Decimal(label) if label is not None else None for label, _ in rows])
        data = parquet_bytes({"rating": label, "text": [str(text or "") for _, text in rows]})
    found = read(write(folder, "huge", data))
    assert len(found) == len(rows)
    assert set(reasons(found[: len(huge)])) <= {"bad_label", "wrong_type", "no_text"}
    assert reasons(found[len(huge) : len(huge) + 2]) == ["Review", "Review"]


def test_rejected_parquet_rows(folder):
    bad = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff")]
    )
    data = parquet_bytes(
        {
            "rating": [5.0, 3.0, None, math.nan, 1.0, 4.5, 5.0, 2.0],
            "title": [None, "t", "t", "t", "t", "t", None, "a\0"],
            "text": pa.chunked_array([["b", "b", "b", "b"], bad, ["b", "", "b"]]),
        }
    )
    expect = ["Review", "Neutral", "bad_label", "bad_label", "invalid_utf8", "bad_label"]
    expect += ["no_text", "invalid_utf8"]
    assert reasons(read(write(folder, "wrong.parquet", data))) == expect


@pytest.mark.parametrize(
    ("label", "text"),
    [
        (pa.array([True, False]), pa.array([b"a", b"\xff"], pa.binary())),
        (pa.array(["pos", "neg"]).dictionary_encode(), pa.array(["a", None]).dictionary_encode()),
        (pa.array([Decimal(1), Decimal(0)]), pa.array(["a", ""])),
        (pa.array([1, 0], pa.uint8()), pa.array([7, None])),
    ],
)
def test_parquet_columns_of_any_type_are_read(folder, label, text):
    found = read(write(folder, "types.parquet", parquet_bytes({"label": label, "text": text})))
    assert len(found) == 2
    assert isinstance(found[0], Review) and found[0].text in ("a", "7")
    assert reasons(found[1:])[0] in ("no_text", "invalid_utf8")


def test_the_rows_of_a_damaged_row_group_are_rejected(folder):
    body = [f"{number} " + "some text " * 200 for number in range(30)]
    data = bytearray(parquet_bytes({"rating": [5] * 30, "text": body}, row_group_size=10))
    file = pq.ParquetFile(io.BytesIO(bytes(data)))
    start = file.metadata.row_group(1).column(1).dictionary_page_offset
    data[start : start + 40] = b"\xff" * 40
    found = read(write(folder, "group.parquet", bytes(data)))
    assert reasons(found) == ["Review"] * 10 + ["corrupt_archive"] * 10 + ["Review"] * 10
    assert "damaged row group 2" in str(found[10])


def test_rows_that_pyarrow_leaves_out_are_rejected(folder, monkeypatch):
    path = write(folder, "few.parquet", parquet_bytes({"rating": [1, 5], "text": ["a", "b"]}))
    monkeypatch.setattr(parquet_format, "_rows", lambda *_: iter([{"rating": [5], "text": ["a"]}]))
    assert reasons(read(path)) == ["Review", "corrupt_archive"]


class _Touch:
    """An object that creates a file when it is unpickled."""

    def __init__(self, file):
        self._file = file

    def __reduce__(self):
        return Path.touch, (self._file,)


def test_code_in_a_parquet_file_is_not_executed(folder):
    """The vulnerability CVE-2023-47248 of pyarrow before 14.0.1."""
    touched = folder / "touched"
    kind = {"ARROW:extension:name": "arrow.py_extension_type"}
    code = {"ARROW:extension:metadata": pickle.dumps(_Touch(touched))}
    field = pa.field("text", pa.string(), metadata={**kind, **code})
    table = pa.table([[1, 0], ["a", "b"]], schema=pa.schema([("label", pa.int64()), field]))
    pq.write_table(table, folder / "code.parquet")
    # A new pyarrow reads the column as text; an old one refuses it.
    with contextlib.suppress(InputError):
        assert reasons(read(str(folder / "code.parquet"))) == ["Review", "Review"]
    assert not touched.exists()


LINES = {
    "fasttext": "".join(f"__label__{n % 2 + 1} title {n}: body {n * n}\n" for n in range(3000)),
    "jsonl": "".join(f'{{"rating": {n % 2 * 4 + 1}, "text": "b {n * n}"}}\n' for n in range(3000)),
    "csv": "1,first,review\n" + "".join(f'{n % 2 + 1},t {n},"a\nb"\n' for n in range(3000)),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "suffix"), [("fasttext", ".bz2"), ("jsonl", ".gz"), ("csv", ".bz2"), ("csv", ".zst")]
)
def test_everything_before_the_damage_is_read(folder, kind, suffix):
    whole = read(write(folder, "whole", LINES[kind]))
    archive = COMPRESS[suffix](LINES[kind].encode())
    for cut in (0, 2, 5, len(archive) // 2, len(archive) - 1):
        found = read(write(folder, f"cut.txt{suffix}", archive[:cut]))
        *before, last = found
        assert before == whole[: len(before)]
        assert reasons([last]) == ["corrupt_archive"]
        assert f"byte {cut:,} of the compressed file" in str(last)
        if before and len(before) < len(whole):
            assert last.position == whole[len(before)].position
    # The last cut removes only a part of the archive's checksum, and no content.
    assert len(before) == len(whole)


@pytest.mark.parametrize("content", ['{"rating": 5, "text": "a"}', "rating,text", "x" * 99])
def test_an_archive_damaged_in_its_first_line(folder, content):
    archive = gzip.compress(content.encode())[:-10]
    for kind in ("auto", "fasttext", "csv", "jsonl"):
        found = read(write(folder, "early.gz", archive), ReadOptions(format=kind))
        assert reasons(found)[-1:] == ["corrupt_archive"] and len(found) <= 2


@pytest.mark.parametrize("separator", [",", "|"])
def test_the_padded_names_of_unknown_columns_are_a_header(folder, separator):
    rows = [("sentiment", "opinion"), *(("good", f"a text, number {n}") for n in range(30))]
    lines = [f"{label:15}{separator}{text.replace(',', ''):80}\n" for label, text in rows]
    message = "no columns with known names: its columns are sentiment, opinion; set data.columns"
    with pytest.raises(InputError, match=message):
        read(write(folder, "table.txt", "".join(lines)))


@pytest.mark.parametrize("reads_labels", [True, False])
@pytest.mark.parametrize("rule", ["|{}|{}|\n", "{}+{}\n"])
def test_the_header_of_a_table_with_aligned_columns_is_no_review(folder, rule, reads_labels):
    # As `to_markdown` of pandas and psql write it: the texts are longer than any name.
    texts = [f"a text of more than thirty characters, number {number}" for number in range(30)]
    edge = "|" if rule.startswith("|") else ""
    rows = [
        (" label ", f"{' text':60}"),
        *((f" {n % 2 + 1}     ", f" {t:59}") for n, t in enumerate(texts)),
    ]
    lines = [f"{edge}{label}|{text}{edge}\n" for label, text in rows]
    lines.insert(1, rule.format("-" * 7, "-" * 60))
    found = read(write(folder, "table.txt", "".join(lines)), ReadOptions(reads_labels=reads_labels))
    assert reasons(found) == ["repeated_header", *["Review"] * 30]
    assert [review.text.strip() for review in found[1:]] == texts
