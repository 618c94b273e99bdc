"""Values of JSON lines and Parquet that are neither texts nor numbers, as labels and as texts."""

import json
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from uuid import UUID

import pyarrow as pa
import pytest

from core.errors import InputError
from preprocessing.reading.labels import label_name
from preprocessing.reading.look import read_table
from preprocessing.reading.records import EACH_TASK, ReadOptions, Rejected
from preprocessing.reading.values import as_text, kind, shown
from tests.preprocessing.reading.review_files import (
    Review,
    detect_format,
    one_line,
    parquet_bytes,
    read,
    reasons,
    write,
)

OPTIONAL = ReadOptions(reads_labels=False)
NESTED = [(["a"], "a list"), ([], "a list"), ({"a": 1}, "an object"), ([("a", 1)], "a list")]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (float("nan"), ""),
        ("a", "a"),
        (True, "true"),
        (2.5, "2.5"),
        (Decimal("2.50"), "2.50"),
        (date(2026, 11, 29), "2026-11-29"),
        (datetime(2026, 11, 29, 8, 30), "2026-11-29 08:30:00"),
        (datetime(2026, 11, 29, 8, 30, tzinfo=timezone.utc), "2026-11-29 08:30:00+00:00"),
        (time(8, 30), "08:30:00"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        ("ä".encode(), "ä"),
        (b"\xff\xfe", "fffe"),
    ],
)
def test_the_text_of_a_value(value, text):
    assert as_text(value) == text
    assert kind(value) is None


@pytest.mark.parametrize(
    ("value", "found"), [*NESTED, (timedelta(1), "a duration"), (object(), "a object")]
)
def test_a_value_without_a_text_has_a_kind(value, found):
    assert as_text(value) is None
    assert kind(value) == found
    assert label_name(value) is None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (["a", None, b"\xff", date(2026, 1, 2)], '["a", null, "ff", "2026-01-02"]'),
        ({"ä": timedelta(1)}, '{"ä": "1 day, 0:00:00"}'),
        (timedelta(1), "1 day, 0:00:00"),
        (b"a", "a"),
        (True, "true"),
    ],
)
def test_a_message_shows_no_value_as_python_writes_it(value, text):
    assert shown(value) == text


@pytest.mark.parametrize("role", ["label", "title", "text"])
@pytest.mark.parametrize(("value", "found"), [NESTED[0], NESTED[2]])
def test_a_column_of_lists_or_objects_is_one_line(tmp_path, role, value, found):
    row = {"label": "good", "title": "t", "text": "b", role: value}
    for data in (
        json.dumps(row),
        parquet_bytes({name: pa.array([each]) for name, each in row.items()}),
    ):
        path = write(tmp_path, "a", data)
        with pytest.raises(InputError) as error:
            detect_format(path)
        one_line(error, path, f"`{role}`", found, f"data.columns.{role}")
        if role == "label":
            assert reasons(read(path, OPTIONAL)) == ["Review"]


def test_a_column_of_durations_is_one_line(tmp_path):
    label = pa.array([timedelta(1)])
    path = write(tmp_path, "a", parquet_bytes({"label": label, "text": ["b"]}))
    with pytest.raises(InputError) as error:
        detect_format(path)
    one_line(error, path, "`label`", "a duration (duration[us])")


def test_single_lists_and_objects_are_rejected_with_their_field(tmp_path):
    rows = [("good", "b"), (["a"], "b"), ("good", {"de": "x"}), (None, "b"), ([], "b")]
    lines = [json.dumps({"label": label, "text": text}) for label, text in rows]
    found = read(write(tmp_path, "a.jsonl", "\n".join(lines)), ReadOptions(label_map={"good": 1}))
    assert [one.detail for one in found if isinstance(one, Rejected)] == [
        '`label` is a list: ["a"]',
        '`text` is an object: {"de": "x"}',
        "no label",
        "`label` is a list: []",
    ]
    assert reasons(found) == ["Review", "wrong_type", "wrong_type", "bad_label", "wrong_type"]


def test_dates_of_parquet_are_labels_and_texts(tmp_path):
    days = [date(2026, 11, 28), date(2026, 11, 29)]
    options = ReadOptions(label_map={"2026-11-28": 0, "2026-11-29": 1})
    found = read(write(tmp_path, "a", parquet_bytes({"label": days, "text": days})), options)
    assert found == [Review(1, 0, "2026-11-28"), Review(2, 1, "2026-11-29")]


def test_timestamps_beyond_those_of_python_and_bad_bytes_are_no_traceback(tmp_path):
    far = pa.array([2**62], pa.timestamp("us"))
    path = write(tmp_path, "a", parquet_bytes({"label": far, "text": ["b"]}))
    assert reasons(read(path, ReadOptions(label_map={"a": 1}))) == ["bad_label"]
    raw = pa.array([b"\xff"])
    bad = pa.Array.from_buffers(pa.string(), 1, raw.buffers())
    path = write(tmp_path, "c", parquet_bytes({"label": far, "text": ["b"], "other": bad}))
    [row] = read_table(path, ReadOptions()).records
    assert row == {"label": 2**62, "text": "b", "other": b"\xff"}
    path = write(tmp_path, "b", parquet_bytes({"label": raw, "text": ["b"]}))
    assert reasons(read(path, ReadOptions(task=EACH_TASK))) == ["invalid_utf8"]


def test_a_further_column_of_lists_is_no_column_of_labels(tmp_path):
    columns = {"stars": [5, 1], "text": ["b", "c"], "label": pa.array([[1], [2]])}
    assert reasons(read(write(tmp_path, "a", parquet_bytes(columns)))) == ["Review", "Review"]
