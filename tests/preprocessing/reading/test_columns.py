"""A further row of `features.COLUMNS` is read from every format and reaches Examples and models."""

import pytest
import tensorflow as tf

from preprocessing import features
from preprocessing.fast.encode import encode_examples
from preprocessing.features import Column
from preprocessing.reading.files import find_sources
from preprocessing.reading.layouts import decide_layouts, describe
from preprocessing.reading.pieces import cut_file
from preprocessing.reading.read import read_batches
from preprocessing.reading.records import Batch, ReadOptions
from tests.preprocessing.reading.review_files import POOL, as_file, write

ROWS = [(5, "Good", True, "A"), (1, "Bad", None, None), (4, "So", "true", 7), (2, "No", "x", "")]
NAMES = ("rating", "text", "Verified_Purchase", "shop")
VALUES = {"verified": [1, 0, 1, 0], "seller": [b"A", b"-", b"7", b"-"]}


@pytest.fixture(autouse=True)
def further_columns(monkeypatch):
    further = (Column("verified", 0, ("verified_purchase",)), Column("seller", b"-"))
    monkeypatch.setattr(features, "COLUMNS", features.COLUMNS + further)


def content(kind):
    columns = dict(zip(NAMES, zip(*ROWS, strict=True), strict=True))
    if kind == "parquet":
        columns = {k: [v if v is None else str(v) for v in of] for k, of in columns.items()}
    return as_file(kind, columns)


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_a_further_column_of_each_format(folder, kind):
    path = write(folder, f"reviews.{kind}", content(kind))
    (file,) = find_sources(str(folder), {"all": f"*.{kind}"})
    layouts = decide_layouts([file], ReadOptions(columns={"seller": "shop"}))
    assert describe(layouts)[0].endswith("text `text`, verified `Verified_Purchase`, seller `shop`")
    (batch,) = read_batches(cut_file(path, layouts[0])[0], POOL)
    texts = [text.encode() for _, text, *_ in ROWS]
    assert batch.columns == {"text": texts, "label": [1, 0, 1, 0], **VALUES}
    spec = features.raw_feature_spec()
    assert set(spec) == {"text", "verified", "seller"}
    parsed = tf.io.parse_example(encode_examples(batch.columns), spec)
    assert parsed["verified"].numpy().tolist() == [[1], [0], [1], [0]]
    assert parsed["seller"].numpy().tolist() == [[value] for value in VALUES["seller"]]


def test_a_further_column_may_have_several_names(folder, monkeypatch):
    several = (Column("verified", 0, ("verified_purchase", "verified")),)
    monkeypatch.setattr(features, "COLUMNS", features.COLUMNS[:2] + several)
    lines = (
        '{"rating": 5, "text": "a", "verified_purchase": true}\n'
        '{"rating": 5, "text": "b", "verified": 1}\n'
        '{"overall": 5, "reviewText": "c", "verified": true}\n'
        '{"overall": 5, "reviewText": "d"}\n'
    )
    path = write(folder, "names.jsonl", lines)
    (layout,) = decide_layouts(find_sources(str(folder), {"all": "names*"}), ReadOptions())
    (batch,) = read_batches(cut_file(path, layout)[0], POOL)
    assert batch.columns["verified"] == [1, 1, 1, 0]


def test_input_without_the_further_columns_has_the_missing_values(folder):
    path = write(folder, "a.ft.txt", "__label__1 one\n__label__2 (two)\n")
    (layout,) = decide_layouts(find_sources(str(folder), {"all": "a*"}), ReadOptions())
    (batch,) = read_batches(cut_file(path, layout)[0], POOL)
    missing = {"verified": [0, 0], "seller": [b"-", b"-"]}
    assert batch.columns == {"text": [b"one", b"(two)"], "label": [0, 1], **missing}
    parsed = tf.io.parse_example(encode_examples({"text": [b"a"]}), features.raw_feature_spec())
    raw = features.raw_features(tf.constant(["a"]))
    assert {k: v.numpy().tolist() for k, v in parsed.items()} == {
        k: v.numpy().tolist() for k, v in raw.items()
    }


def test_integers_are_exact_or_missing():
    values = ["9007199254740993", -5, " +7 ", 2.0, "1e400", 2**63, "9" * 9000]
    batch = Batch()
    for value in values:
        batch.add(1, 1, "", "text", [value, None])
    assert batch.columns["verified"] == [9007199254740993, -5, 7, 2, 0, 0, 0]
