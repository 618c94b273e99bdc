"""Records of several datasets in one file: each is read by the columns that it has."""

import gzip
import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import InputError
from preprocessing.reading import samples
from preprocessing.reading.files import SourceFile
from preprocessing.reading.layouts import decide_layouts, describe
from preprocessing.reading.records import ReadOptions
from tests.preprocessing.reading.review_files import (
    COMPRESS,
    MANY,
    as_file,
    csv_text,
    detect_format,
    got,
    one_line,
    read,
    reasons,
    write,
)

KINDS = ["csv", "jsonl", "parquet"]
OPTIONAL = ReadOptions(reads_labels=False)
SCHEMAS = [
    ("overall", "summary", "reviewText"),
    ("reviews.rating", "reviews.title", "reviews.text"),
    ("star_rating", "review_headline", "review_body"),
    ("stars", "review_title", "review_body"),
    ("Score", "Summary", "Text"),
    ("rating", "title", "text"),
    ("rating", "title", "review"),
    ("stars", "title", "text"),
    ("label", "title", "content"),
    ("label", "title", "text"),
]


def record(schema, number, label=1, body="body", title="title"):
    """Return a review with the columns of a schema."""
    words = ("negative", "positive")[label]
    value = words if schema[0] == "label" else 1 + 4 * label
    return dict(zip(schema, (value, f"{title} {number}", f"{body} {number}"), strict=True))


def table(kind, rows):
    """Return a file with these rows; JSON lines lack the names that a row lacks."""
    if kind == "jsonl":
        return "".join(json.dumps(row) + "\n" for row in rows).encode()
    names = dict.fromkeys(name for row in rows for name in row)
    return as_file(kind, {name: [row.get(name) for row in rows] for name in names})


@pytest.mark.parametrize("kind", KINDS)
@MANY
@given(rows=st.lists(st.tuples(st.sampled_from(SCHEMAS), st.booleans()), min_size=1, max_size=12))
def test_any_mixture_of_known_schemas_yields_each_review_once(folder, kind, rows):
    data = table(kind, [record(schema, n, int(label)) for n, (schema, label) in enumerate(rows)])
    path = write(folder, f"mixed.{kind}", data)
    texts = [f"title {n}: body {n}" for n in range(len(rows))]
    labels = [int(label) for _, label in rows]
    assert got(read(path)) == list(zip(labels, texts, strict=True))
    assert [text for _, text in got(read(path, OPTIONAL))] == texts


@pytest.mark.parametrize("kind", KINDS)
def test_the_body_may_be_under_another_known_name(folder, kind):
    """The name in the first records, and the name of most records, do not decide."""
    rows = [record(("rating", "title", "reviewText"), n) for n in range(20)]
    rows[3:3] = [record(("rating", "title", "text"), n) for n in range(20, 30)]
    path = write(folder, f"body.{kind}", table(kind, rows))
    texts = [f"title {n}: body {n}" for n in (*range(3), *range(20, 30), *range(3, 20))]
    assert [text for _, text in got(read(path))] == texts
    assert [text for _, text in got(read(path, OPTIONAL))] == texts


@pytest.mark.parametrize("word", ["NaN", "nan", "NULL", r"\N", "None", "N/A", " <NA> "])
@pytest.mark.parametrize("kind", KINDS)
def test_a_word_for_a_missing_value_is_no_label(folder, kind, word):
    """`to_csv(na_rep='NaN')` and `astype(str)` of pandas write such words."""
    rows = [record(SCHEMAS[0], 0), record(SCHEMAS[5], 1), record(SCHEMAS[2], 2)]
    names = [name for row in rows for name in row]
    filled = [{name: str(row.get(name, word)) for name in names} for row in rows]
    path = write(folder, f"missing.{kind}", table(kind, filled))
    texts = [f"title {n}: body {n}" for n in range(3)]
    assert got(read(path)) == [(1, text) for text in texts]
    assert [text for _, text in got(read(path, OPTIONAL))] == texts


@pytest.mark.parametrize("word", ["nan", "NULL", r"\N", " None "])
@pytest.mark.parametrize("kind", KINDS)
def test_a_word_for_a_missing_value_is_no_text_beside_another_text(folder, kind, word):
    """A record with a word for a missing text is read by the text that it has."""
    names = ("rating", "title", "text", "review")
    rows = [(5, "a", word, "b 1"), (5, "a", "b 2", word), (5, "a", word, word), (5, "a", word, "")]
    is_text = word == " None "  # which a person may write
    path = write(
        folder, f"words.{kind}", table(kind, [dict(zip(names, row, strict=True)) for row in rows])
    )
    texts = ["a: b 1", "a: b 2", *[f"a: {word}" if is_text else "a: "] * 2]
    assert got(read(path)) == [(1, text) for text in texts]
    assert [text for _, text in got(read(path, OPTIONAL))] == texts


@pytest.mark.parametrize("word", ["nan", "NULL", r"\N", "(null)", "<NA>", "NaT"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_word_for_a_missing_value_is_neither_a_title_nor_a_text(folder, kind, word):
    rows = [
        {"rating": "5", "title": word, "text": "a body", "comment": ""},
        {"rating": "1", "title": word, "text": word, "comment": ""},
        {"rating": "1", "title": "N/A", "text": "None", "comment": ""},
        {"rating": "1", "title": "", "text": word, "comment": "another column"},
    ]
    path = write(folder, f"written.{kind}", table(kind, rows))
    expect = [(1, "a body"), "no_text", (0, "None"), "unknown_columns"]
    assert got(read(path)) == expect


@pytest.mark.parametrize(
    "body", [{"en": "It works well"}, ["It works", "and well"], [{"p": "a b"}]]
)
def test_a_body_in_a_list_or_an_object_is_not_left_out_beside_a_title(folder, body):
    rows = [FIRST, {"rating": 1, "title": "a title", "paragraphs": body}]
    path = write(folder, "nested.jsonl", table("jsonl", rows))
    for options in (ReadOptions(), OPTIONAL):
        assert reasons(read(path, options)) == ["Review", "unknown_columns"]


def test_a_record_with_another_separator_is_no_empty_one(folder):
    lines = [f"{n % 2 * 4 + 1};Title {n};It works, number {n}\n" for n in range(20)]
    joined = [f"{line.strip().replace(';', '|')};;\n" for line in lines]
    path = write(folder, "joined.csv", f"rating;title;text\n{''.join(lines + joined)}")
    found = read(path)
    assert reasons(found) == ["Review"] * 20 + ["unknown_columns"] * 20
    assert found[-1].detail == "no text in `text`, but in `rating`: 5|Title 19|It works, number 19"


def test_a_missing_label_is_named_unless_it_is_set(folder):
    rows = [FIRST, FIRST | {"rating": "None"}]
    path = write(folder, "none.jsonl", table("jsonl", rows))
    assert read(path)[1].detail == (
        "label: None, a word for a missing value (a mapping in data.labels can make it a class)"
    )
    rows = [{"label": "good", "text": "b"}, {"label": "None", "text": {}}, {"label": "None"}]
    path = write(folder, "set.jsonl", table("jsonl", rows))
    options = ReadOptions(label_map={"good": 1, "none": 0})
    assert got(read(path, options)) == [(1, "b"), "wrong_type", "no_text"]


FIRST = {"rating": 5, "title": "t", "text": "b", "asin": "B01", "reply": None}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("row", "expect"),
    [
        ({"rating": 1, "title": "only a title", "text": "", "asin": "B0"}, (0, "only a title: ")),
        ({"rating": 1, "title": "t", "text": "", "review": "r"}, (0, "t: r")),
        # A record with two complete schemas.
        (record(SCHEMAS[5], 1, 0, "new", "a") | record(SCHEMAS[0], 2, 1, "old", "c"), None),
        (record(SCHEMAS[5], 1) | {"summary": "other", "overall": 1}, (1, "title 1: body 1")),
        ({"rating": None, "overall": 1, "text": "", "reviewText": "x", "title": "t"}, (0, "x")),
        ({"rating": 1, "text": " ", "asin": "B02"}, "no_text"),
        ({"rating": 1, "title": "", "text": "", "comment": "A long text"}, "unknown_columns"),
        ({"rating": 1, "title": "Short", "comment": "A long text"}, "unknown_columns"),
        ({"grade": "A", "comment": "Bad"}, "unknown_columns"),
        ({"asin": "B03"}, "unknown_columns"),
        ({"asin": " "}, "no_text"),
        ({"rating": 1, "title": "\u200b", "text": " \ufeff\u200b"}, "no_text"),
        ({"text": "a review without a label"}, "bad_label"),
    ],
)
def test_a_record_beside_those_of_another_schema(folder, kind, row, expect):
    path = write(folder, f"beside.{kind}", table(kind, [FIRST, FIRST, row, FIRST]))
    first, _, found, last = got(read(path))
    assert first == last == (1, "t: b")
    # Of two complete schemas the one with the first name in the documentation is read.
    assert found == (expect or (1, "c 2: old 2"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_rejected_record_names_its_columns(folder, kind):
    rows = [FIRST, {"rating": 1, "title": "Short", "comment": "Of two words", "asin": "B02"}]
    path = write(folder, f"named.{kind}", table(kind, rows))
    assert read(path)[1].detail == "no text in `text`, but a value in `comment`"
    assert reasons(read(path, OPTIONAL)) == ["Review", "unknown_columns"]


@pytest.mark.parametrize(("words", "expect"), [("two words", "unknown_columns"), ("one", "Review")])
def test_a_text_within_hundreds_of_lists_is_found(folder, words, expect):
    row = (
        '{"rating": 5, "title": "Short", "comment": ' + "[" * 700 + f'"{words}"' + "]" * 700 + "}\n"
    )
    path = write(folder, "deep.jsonl", json.dumps(FIRST) + "\n" + row)
    assert reasons(read(path)) == ["Review", expect]


@pytest.mark.parametrize("kind", KINDS)
def test_no_other_column_is_read_in_place_of_one_that_is_set(folder, kind):
    rows = [
        {"rating": 5, "title": "t", "text": "not this", "words": "b"},
        {"rating": 5, "title": "t", "text": "nor this", "words": ""},
        {"rating": 1, "text": "nor this one", "words": None},
        {"rating": None, "stars": 1, "text": "nor", "words": "b"},
    ]
    path = write(folder, f"chosen.{kind}", table(kind, rows))
    found = got(read(path, ReadOptions(columns={"text": "words"})))
    assert found == [(1, "t: b"), (1, "t: "), "no_text", (0, "b")]
    found = got(read(path, ReadOptions(columns={"text": "words", "label": "rating"})))
    assert found == [(1, "t: b"), (1, "t: "), "no_text", "bad_label"]
    found = got(read(path, ReadOptions(columns={"title": None})))
    assert found == [(1, "not this"), (1, "nor this"), (0, "nor this one"), (0, "nor")]


@pytest.mark.parametrize("kind", KINDS)
def test_a_record_with_nothing_in_the_columns_that_are_set_has_no_text(folder, kind):
    """A scraper has written the date of a review that it could not read."""
    rows = [
        {"note": 5, "words": "b", "date": "2025-06-21", "reply": ""},
        {"note": None, "words": "", "date": "2025-06-22", "reply": ""},
        {"note": None, "words": "", "date": "2025-06-23", "reply": "Thanks for your words"},
    ]
    path = write(folder, f"scraped.{kind}", table(kind, rows))
    options = ReadOptions(columns={"label": "note", "text": "words"})
    assert got(read(path, options)) == [(1, "b"), "no_text", "unknown_columns"]
    lacking = [rows[0], {"note": None, "date": "2025-06-24"}]
    path = write(folder, "lacking.jsonl", table("jsonl", lacking))
    assert got(read(path, options)) == [(1, "b"), "unknown_columns"]


@pytest.mark.parametrize("reads_labels", [True, False])
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_names_behind_the_inspected_head_are_found(folder, monkeypatch, suffix, reads_labels):
    monkeypatch.setattr(samples, "_HEAD", 1 << 12)
    schemas = [("rating", "title", "text"), ("Overall", "Summary", "ReviewText"), SCHEMAS[8]]
    rows = [record(schema, f"{n} of {schema[2]}") for schema in schemas for n in range(200)]
    path = write(folder, f"late{suffix}", COMPRESS[suffix](table("jsonl", rows)))
    found = [text for _, text in got(read(path, ReadOptions(reads_labels=reads_labels)))]
    assert found == [f"title {n}: body {n}" for n in (row["n"] for row in _numbers(schemas))]


def _numbers(schemas):
    return [{"n": f"{n} of {schema[2]}"} for schema in schemas for n in range(200)]


def test_row_groups_of_parquet_may_have_different_columns(folder):
    names = ["rating", "text", "comment", "overall", "reviewText", "asin", "vote"]
    schema = pa.schema([(name, pa.string()) for name in names])
    groups = [
        [["1", "a", None, None, None, "B1", None], ["5", "", None, None, None, "B2", "2"]],
        [[None, None, None, "5", "b", "B3", "1"], ["1", None, None, None, None, "B4", "7"]],
        [["5", None, "The third group", None, None, "B5", None]],
        [[None, None, None, None, None, "B6", None]],
    ]
    out = io.BytesIO()
    with pq.ParquetWriter(out, schema) as writer:
        for rows in groups:
            writer.write_table(
                pa.table(list(map(pa.array, zip(*rows, strict=True))), names).cast(schema)
            )
    found = read(write(folder, "groups.parquet", out.getvalue()))
    assert got(found) == [
        (0, "a"),
        "unknown_columns",
        (1, "b"),
        "no_text",
        *["unknown_columns"] * 2,
    ]
    assert "`vote`" in found[1].detail and "`comment`" in found[4].detail


# ---- labels


@pytest.mark.parametrize("kind", KINDS)
def test_each_column_of_labels_has_a_scale_of_its_own(folder, kind):
    stars = [{"rating": n, "text": f"stars {n}"} for n in (1, 4, 5, 1)]
    binary = [{"label": n, "content": f"binary {n}"} for n in (1, 0, 1)]
    for number, rows in enumerate(([*stars, *binary], [*binary, *stars])):
        path = write(folder, f"scales{number}.{kind}", table(kind, rows))
        found = dict(reversed(pair) for pair in got(read(path)))
        assert found == {
            **{"stars 1": 0, "stars 4": 1, "stars 5": 1},
            **{"binary 0": 0, "binary 1": 1},
        }


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("numbers", [(0, 1), (-1, 1), (0, 4)])
def test_a_column_of_ratings_with_labels_of_another_scale_is_refused(folder, kind, numbers):
    rows = [{"rating": n, "text": f"stars {n}"} for n in (1, 4, 5)]
    rows += [{"score": n, "summary": "s", "review_body": f"other {n}"} for n in numbers]
    path = write(folder, f"contradiction.{kind}", table(kind, rows))
    with pytest.raises(InputError) as error:
        read(path)
    shown = ", ".join(map(str, numbers))
    one_line(
        error, path, f"`score` has the name of a rating of 1 to 5 stars, and the labels {shown}"
    )
    # The remedy of the message.
    renamed = [{("label" if k == "score" else k): v for k, v in row.items()} for row in rows]
    found = got(read(write(folder, f"renamed.{kind}", table(kind, renamed))))
    assert [label for label, _ in found[3:]] == [0, 1]


def test_1_and_2_beside_stars_in_one_file_are_ambiguous(folder):
    rows = [{"rating": 5, "text": "a"}, {"label": 1, "text": "b"}, {"label": 2, "text": "c"}]
    path = write(folder, "ambiguous.jsonl", table("jsonl", rows))
    with pytest.raises(InputError) as error:
        read(path)
    one_line(error, path, "the meaning of the labels 1, 2 is not certain beside the stars")


def test_a_number_in_a_column_that_was_not_inspected_fails_the_run(folder, monkeypatch):
    monkeypatch.setattr(samples, "_HEAD", 1 << 12)
    rows = [record(SCHEMAS[5], n) for n in range(300)] + [{"label": 1, "content": "late"}]
    # Samples of a gzip file cannot be read.
    path = write(folder, "late-labels.jsonl.gz", gzip.compress(table("jsonl", rows)))
    found = read(path)
    assert reasons(found)[-1] == "label_of_another_scale"
    assert found[-1].detail == "label in `label`: 1"


def test_a_single_unknown_rating_is_no_other_scale(folder):
    rows = [{"rating": n, "text": f"stars {n}"} for n in (5, 0, 1)]
    path = write(folder, "unknown.jsonl", table("jsonl", rows))
    assert reasons(read(path)) == ["Review", "bad_label", "Review"]


# ---- the lines that show how files are read


def test_the_columns_of_other_records_are_shown(folder):
    rows = [record(SCHEMAS[0], 1), record(SCHEMAS[5], 2), record(SCHEMAS[8], 3)]
    path = write(folder, "shown.jsonl", table("jsonl", rows))
    [layout] = decide_layouts([SourceFile(path, 1, 0.0)], ReadOptions())
    assert describe([layout])[0].split("; other records: ") == [
        "JSON lines: label `overall` (1 to 5), title `summary`, text `reviewText`",
        "label `rating` (1 to 5), title `title`, text `text`",
        "label `label` (words), title `title`, text `content`",
    ]
    # The pieces of a batch are found again by the text of their layout.
    assert repr(detect_format(path)) == repr(detect_format(path))


def test_equal_columns_of_other_records_are_shown_once(folder):
    rows = [("review", "stars"), ("a good phone", 5), ("a bad phone", 1)]
    path = write(folder, "unlabelled.csv", csv_text(rows))
    [layout] = decide_layouts([SourceFile(path, "all", 0)], ReadOptions(reads_labels=False))
    assert describe([layout]) == ["CSV: title -, text `review`"]


def test_columns_of_equal_names_are_refused_unless_they_are_not_read(folder):
    rows = [("rating", "text", "text"), (5, "first", "second"), (1, "", "second")]
    path = write(folder, "twice.csv", csv_text(rows))
    with pytest.raises(InputError, match="has 2 columns with the name 'text'"):
        read(path)
    rows = [("rating", "text", "note", "note"), (5, "good", 1, 2), (1, "bad", 3, 4)]
    path = write(folder, "twice.csv", csv_text(rows))
    assert got(read(path)) == [(1, "good"), (0, "bad")]
