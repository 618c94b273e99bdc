"""Labels of any text: what is written in a file of any format comes back as the name of a class."""

import csv
import io
import json
import re
import unicodedata
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from core.errors import InputError
from preprocessing.labels import SENTIMENT
from preprocessing.reading import records as reading_records
from preprocessing.reading.columns import Layout
from preprocessing.reading.files import find_sources
from preprocessing.reading.labels import CollectedLabels, LabelReader
from preprocessing.reading.layouts import decide_layouts, describe
from preprocessing.reading.pieces import cut_file
from preprocessing.reading.read import read_batches
from preprocessing.reading.records import ReadOptions
from tests.preprocessing.reading.review_files import (
    COMPRESS,
    MANY,
    POOL,
    SUFFIXES,
    Review,
    detect_format,
    write,
)
from tests.preprocessing.reading.review_files import read as read_reviews

EACH = ReadOptions(task="each", classes=())
CHARACTERS = st.characters(blacklist_categories=["Cs"], blacklist_characters="\0")
NAME = st.text(CHARACTERS, min_size=1, max_size=30) | st.sampled_from(
    [
        *("card arrival", "a,b", 'say "hi"', "IT", "it", "Größe", "Gro\u0308ße", "日本語", "שלום"),
        *(
            "🙂",
            "👩‍👩‍👧",
            "a\tb",
            "'",
            "-",
            "#1",
            "04109",
            "v1.10",
            "label",
            "x" * 3_000,
            "a;b",
            "null island",
        ),
    ]
)
EDGE = r"[\s\xad\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]*"
NAMES = st.lists(NAME, min_size=1, max_size=6)


def name_of(label):
    """Return the name of the class of a written label; skip those that are no plain text."""
    name = unicodedata.normalize("NFC", re.sub(rf"^{EDGE}|{EDGE}$", "", label))
    lower = name.lower()
    assume(name and lower not in reading_records.MISSING | {"true", "false"})
    assume(not lower.startswith("__label__"))
    assume(not re.fullmatch(r"[-+]?[0-9]+([.,]0*)?( out of 5 stars)?", lower, re.ASCII))
    assume(not re.fullmatch(r"[-+]?[0-9.]+e[-+][0-9]+", lower, re.ASCII))
    return name


def read(path, options=EACH):
    """Return the name of the class of each Example of a file, and the reasons of other lines."""
    layout = detect_format(path, options)
    collected = CollectedLabels()
    for piece in cut_file(path, replace(layout, collected=collected)):
        for batch in read_batches(piece, POOL):
            assert all(label < len(collected.names) for label in batch.labels)
    names = list(collected.names)
    label_map = {name: index for index, name in enumerate(names)}
    classes, reasons = [], []
    for piece in cut_file(path, replace(layout, label_map=label_map)):
        for batch in read_batches(piece, POOL):
            classes += [names[label] for label in batch.labels]
            reasons += [line.reason for line in batch.rejected]
    assert set(classes) == set(names)
    return classes, reasons


def fasttext_lines(names):
    return "".join(f"__label__{name} Text {number}\n" for number, name in enumerate(names))


def csv_lines(names, separator=",", header=True):
    out = io.StringIO()
    writer = csv.writer(out, delimiter=separator, quoting=csv.QUOTE_ALL)
    writer.writerows([["label", "text"]] * header)
    writer.writerows([name, f"text {number}"] for number, name in enumerate(names))
    return out.getvalue()


def json_lines(names, ascii=True):
    rows = [{"label": name, "text": f"text {number}"} for number, name in enumerate(names)]
    return "".join(json.dumps(row, ensure_ascii=ascii) + "\n" for row in rows)


def parquet_file(labels, metadata=None, column="label"):
    out = io.BytesIO()
    texts = [f"text {number}" for number in range(len(labels))]
    table = pa.table({column: labels, "text": texts})
    if metadata:
        table = table.replace_schema_metadata({b"huggingface": json.dumps(metadata).encode()})
    pq.write_table(table, out, row_group_size=3)
    return out.getvalue()


@MANY
@given(suffix=SUFFIXES, names=NAMES)
def test_any_text_is_a_label_in_fasttext(folder, suffix, names):
    assume(not any(re.search(rb"\s", name.encode()) for name in names))
    expected = list(map(name_of, names))
    # fastText is recognised by labels without a comma.
    path = write(folder, f"a.txt{suffix}", COMPRESS[suffix](fasttext_lines(names).encode()))
    assert read(path, replace(EACH, format="fasttext")) == (expected, [])


@MANY
@given(suffix=SUFFIXES, names=NAMES, separator=st.sampled_from(",\t;|"))
def test_any_text_is_a_label_in_csv(folder, suffix, names, separator):
    expected = list(map(name_of, names))
    data = COMPRESS[suffix](csv_lines(names, separator).encode())
    assert read(write(folder, f"a.csv{suffix}", data)) == (expected, [])


@MANY
@given(names=NAMES, separator=st.sampled_from(",\t"))
def test_any_text_is_a_label_in_csv_without_a_header(folder, names, separator):
    expected = list(map(name_of, names * 2))
    assume(names[0].strip().lower() != "label")
    # Without a header, the quotation marks around such a label do not show that it is one field.
    assume(separator != "\t" or not any({"\t", "\n"} <= set(name) for name in names))
    data = csv_lines(names * 2, separator, header=False)
    assert read(write(folder, "a.csv", data)) == (expected, [])


@MANY
@given(suffix=SUFFIXES, names=NAMES, ascii=st.booleans())
def test_any_text_is_a_label_in_json_lines(folder, suffix, names, ascii):
    expected = list(map(name_of, names))
    data = COMPRESS[suffix](json_lines(names, ascii).encode())
    assert read(write(folder, f"a.jsonl{suffix}", data)) == (expected, [])


@MANY
@given(names=NAMES, kind=st.sampled_from(["string", "large_string", "dictionary", "binary"]))
def test_any_text_is_a_label_in_parquet(folder, names, kind):
    expected = list(map(name_of, names))
    labels = pa.array(names)
    if kind == "dictionary":
        labels = labels.dictionary_encode()
    elif kind != "string":
        labels = labels.cast(getattr(pa, kind)())
    assert read(write(folder, "a.parquet", parquet_file(labels))) == (expected, [])


NUMBERS = [
    (pa.array([4, 0, 12], pa.int8()), ["4", "0", "12"]),
    (pa.array([4, 0, 12], pa.uint64()), ["4", "0", "12"]),
    (pa.array([4.0, 0.5, -1.0], pa.float32()), ["4", "0.5", "-1"]),
    (pa.array([4, 0, 4]).dictionary_encode(), ["4", "0", "4"]),
    (pa.array([True, False, True]), ["true", "false", "true"]),
]


@pytest.mark.parametrize(("labels", "expected"), NUMBERS)
def test_numbers_and_booleans_in_parquet(folder, labels, expected):
    assert read(write(folder, "a.parquet", parquet_file(labels))) == (expected, [])


@pytest.mark.parametrize("written", ["csv", "jsonl", "fasttext"])
def test_numbers_and_booleans_in_text(folder, written):
    labels = ["4", "4.0", " 4", "4,0", "TRUE", "true", "04", "4.5"]
    expected = ["4", "4", "4", "4", "true", "true", "04", "4.5"]
    content = {
        "csv": csv_lines(labels),
        "jsonl": json_lines(labels),
        "fasttext": fasttext_lines(label.strip() for label in labels),
    }[written]
    path = write(folder, f"a.{written}", content)
    assert read(path, replace(EACH, format=written)) == (expected, [])
    if written == "jsonl":
        values = [4, 4.0, 4e0, "4", True, "true", "04", 4.5]
        assert read(write(folder, "b.jsonl", json_lines(values))) == (expected, [])


SPELLINGS = ["2", "__label__2", "__label____label__2", "__LABEL__ 2.0", " __label__ 2", "2.0"]


@pytest.mark.parametrize("options", [ReadOptions(), EACH], ids=["sentiment", "each"])
@given(order=st.permutations(SPELLINGS))
def test_a_label_has_one_meaning_whatever_labels_were_read_before(options, order):
    """Pieces of a file are read by several workers, each with the labels of its own lines."""
    label_map = {"2": 0, "__label__2": 1} if options is EACH else {}
    layout = Layout("jsonl", label_map=label_map, keeps_case=options is EACH)
    reader = LabelReader(layout)
    expected = LabelReader(layout).read("2")
    assert expected is not None
    assert [reader.read(label) for label in order] == [expected] * len(order)
    collected = CollectedLabels()
    first_pass = LabelReader(replace(layout, label_map={}, collected=collected))
    assert {first_pass.read(label) for label in order} == {0} and list(collected.names) == ["2"]


CLASS_LABEL = {
    "info": {"features": {"label": {"names": ["b", "a", "Größe"], "_type": "ClassLabel"}}}
}


def test_the_names_of_numbers_in_a_file_of_hugging_face(folder):
    path = write(folder, "a.parquet", parquet_file([2, 0, 1, -1, 3, None], CLASS_LABEL))
    assert read(path) == (["Größe", "b", "a"], ["bad_label"] * 3)
    # A mapping names the numbers.
    sentiments = {"info": {"features": {"label": {"names": ["positive", "negative"]}}}}
    for options in (replace(EACH, task="map"), ReadOptions()):
        for metadata in (CLASS_LABEL, sentiments):
            path = write(folder, "a.parquet", parquet_file([0, 1], metadata))
            mapped = replace(options, label_map={"0": 0, "1": 1})
            assert detect_format(path, mapped).class_names == ()
    for names in (["a", "a", "b"], ["a", " ", "b"], ["a", 1, "b"], "abc", None):
        other = {"info": {"features": {"label": {"names": names}}}}
        path = write(folder, "a.parquet", parquet_file([2, 0], other))
        assert read(path) == (["2", "0"] if names != "abc" else ["c", "a"], [])


SENTIMENTS = [
    (["positive", "negative"], [0, 1, 1], ["positive", "negative", "negative"]),
    (["Negative", "Neutral", "Positive"], [0, 1, 2, -1], ["negative", "positive"]),
    (["neg", "pos"], [0, 1, 2], ["negative", "positive"]),
]


@pytest.mark.parametrize(("names", "numbers", "expected"), SENTIMENTS)
def test_names_of_hugging_face_that_are_sentiments_are_read(folder, names, numbers, expected):
    for column in ("label", "rating"):
        metadata = {"info": {"features": {column: {"names": names}}}}
        path = write(folder, "a.parquet", parquet_file(numbers, metadata, column))
        found = [record for record in read_reviews(path) if isinstance(record, Review)]
        assert [SENTIMENT.names[review.label] for review in found] == expected


@pytest.mark.parametrize("names", [["world", "positive"], ["no", "yes"]])
def test_other_names_of_hugging_face_do_not_decide_the_sentiment(folder, names):
    metadata = {"info": {"features": {"label": {"names": names}}}}
    layout = detect_format(write(folder, "a.parquet", parquet_file([0, 1], metadata)))
    assert (layout.label_scale, layout.class_names) == ("0 and 1", ())
    grades = ["very negative", "negative", "neutral", "positive", "very positive"]
    metadata = {"info": {"features": {"label": {"names": grades}}}}
    layout = detect_format(write(folder, "b.parquet", parquet_file([0, 1, 4], metadata)))
    assert (layout.label_scale, layout.class_names) == ("0 to 4", ())


NAMES_BESIDE_NUMBERS = [
    (["negative", "positive"], (0, 1), [0, 1, None]),
    (["negative", "positive"], (1, 2, 5), [None, 0, 0]),
    (["positive", "negative"], (0, 1), "{0: 1, 1: 0}"),
    (["neg", "neutral", "pos"], (0, 1), "{0: 0, 1: null, 2: 1}"),
    (["neg", "neutral", "pos"], (1, 2), "{0: 0, 1: null, 2: 1}"),
]


@pytest.mark.parametrize(("names", "numbers", "expected"), NAMES_BESIDE_NUMBERS)
def test_names_of_sentiments_beside_a_file_of_numbers(tmp_path, names, numbers, expected):
    metadata = {"info": {"features": {"label": {"names": names}}}}
    path = write(tmp_path, "a.parquet", parquet_file([0, 1, 1], metadata))
    rows = "".join(f"{n},other {n}\n" for n in numbers)
    other = write(tmp_path, "b.csv", f"label,text\n{rows}")
    files = find_sources(str(tmp_path), {"all": "**"})
    if isinstance(expected, str):
        with pytest.raises(InputError, match=re.escape(f"set data.labels={expected}")) as error:
            decide_layouts(files, ReadOptions())
        assert path in str(error.value) and other in str(error.value)
        return
    named, numbered = decide_layouts(files, ReadOptions())
    assert [LabelReader(named).read(n) for n in (0, 1, 2)] == [0, 1, None]
    assert [LabelReader(numbered).read(n) for n in ("0", "1", "2")] == expected


def test_a_label_that_is_not_utf8_is_rejected_for_this_reason(folder):
    good = "__label__Größe Text\n".encode()
    path = write(folder, "a.txt", good + "__label__Größe Text\n".encode("latin-1"))
    assert read(path) == (["Größe"], ["invalid_utf8"])
    path = write(folder, "a.csv", b"label,text\nok,a\n" + "Größe,b\n".encode("latin-1"))
    assert read(path) == (["ok"], ["invalid_utf8"])
    path = write(folder, "a.jsonl", json_lines(["ok", "\ud800", "a\0b"]))
    assert read(path) == (["ok"], ["invalid_utf8"] * 2)


def test_the_spellings_of_one_label(folder):
    """Signs and powers as NumPy and R write them, and characters that nobody sees."""
    labels = [
        "1",
        "+1",
        "1.00e+00",
        "\ufeff1",
        "-1",
        "-1.0e+00",
        "a",
        "a\u200b ",
        "\u200fa",
        "__label__\u200ba",
        "2.5e-01",
    ]
    content = csv_lines(labels)
    expect = ["1", "1", "1", "1", "-1", "-1", "a", "a", "a", "a", "0.25"]
    assert read(write(folder, "a.csv", content)) == (expect, [])
    assert read(write(folder, "a.txt", fasttext_lines(["a", "\u200ba"]))) == (["a", "a"], [])
    flags = ["\U0001f3f4\U000e0067\U000e007f", "\U0001f3f4", "1e5", "2e+5"]
    assert read(write(folder, "b.csv", csv_lines(flags))) == (flags, [])


def test_a_line_of_fasttext_with_several_labels_is_rejected(folder):
    path = write(folder, "a.txt", "__label__a x\n__label__a __label__b y\n__label__b\tz\n")
    assert read(path) == (["a", "b"], ["bad_label"])


@pytest.mark.parametrize("missing", ["", "\u200b ", "NaN", "None", "NULL", "N/A", r"\N", "(null)"])
def test_a_missing_label_is_rejected_and_not_a_class(folder, missing):
    labels = ["a", missing, "b"]
    for content in (csv_lines(labels), json_lines(labels), parquet_file(labels)):
        assert read(write(folder, "a", content)) == (["a", "b"], ["bad_label"])
    assert read(write(folder, "a.jsonl", json_lines(["a", None, "b"]))) == (
        ["a", "b"],
        ["bad_label"],
    )


def test_a_csv_file_without_a_header_repeats_its_first_label(folder):
    rows = "card_arrival,Where is my card?\nrefund,Money back\ncard_arrival,Still waiting\n"
    layout = detect_format(write(folder, "a.csv", rows), EACH)
    assert layout.header is None
    assert describe([replace(layout, label_map={"a": 0})]) == [
        "CSV without a header: label (data.labels), text"
    ]
    assert detect_format(write(folder, "b.csv", "label,text\na,x\na,y\n"), EACH).header
