"""The counts of lines: their sum, their form in files and in properties, and their sentence."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.line_counts import DUPLICATE, SPLITS, LineCounts, RejectedLine, joined_lines
from components.rejected_lines import read_counts, read_lines, write_counts
from core.errors import InputError
from preprocessing.reading.records import BAD_LABEL, NO_TEXT, OTHER_SCALE, REPEATED_HEADER

REASONS = (BAD_LABEL, OTHER_SCALE, NO_TEXT, DUPLICATE)
NUMBERS = st.integers(0, 1 << 40)
NAMES = st.sampled_from(
    [
        *(f"examples/{split}" for split in SPLITS),
        *(f"rejected/{reason}" for reason in REASONS),
        *("neutral", "over_max_examples", "lost_bytes"),
    ]
)
STORED = st.dictionaries(NAMES, NUMBERS)


@given(STORED)
def test_the_form_in_files_and_that_in_properties_have_every_count_other_than_0(stored):
    counts = LineCounts.from_file(stored)
    assert counts.to_file() == {name: count for name, count in stored.items() if count}
    properties = {name.replace("/", "_"): count for name, count in counts.to_file().items()}
    assert counts.to_properties() == properties
    assert LineCounts.from_properties(properties) == counts


@given(STORED, STORED)
def test_a_sum_has_the_sum_of_each_count_and_bytes_are_no_lines(one, two):
    total = LineCounts.from_file(one) + LineCounts.from_file(two)
    names = {*one, *two}
    expected = {name: one.get(name, 0) + two.get(name, 0) for name in names}
    assert total == LineCounts.from_file(expected)
    assert total.lines == sum(expected.values()) - expected.get("lost_bytes", 0)


@pytest.mark.parametrize("name", ["file", "rejected", "examples", "lines/train", "examples_train"])
def test_a_name_that_is_no_count_is_not_taken_for_lines(name):
    with pytest.raises(ValueError, match=f"{name} is not the name of a count"):
        LineCounts.from_file({name: 3})


def test_a_property_of_tfx_is_not_taken_for_lines():
    counts = LineCounts.from_properties({"examples_train": 5, "is_external": 1})
    assert (counts.to_properties(), counts.lines) == ({"examples_train": 5}, 5)


@pytest.mark.parametrize(
    ("stored", "line"),
    [
        ({}, "0 read: 0 train, 0 eval, 0 test, 0 rejected"),
        (
            {
                **{"examples_train": 5, "neutral": 1, "over_max_examples": 3},
                **{"rejected_bad_label": 2, "rejected_no_text": 4, "rejected_broken_csv": 1},
            },
            "16 read: 5 train, 0 eval, 0 test, 1 left out by label, 3 over data.max_examples, "
            "4 without text left out, 3 rejected (bad_label 2, broken_csv 1)",
        ),
        (
            {"examples_train": 5, "rejected_corrupt_archive": 1, "lost_bytes": 900_000},
            "6 read: 5 train, 0 eval, 0 test, 1 rejected (corrupt_archive 1), "
            "900,000 bytes of the files cannot be read",
        ),
    ],
)
def test_the_sentence_counts_every_line(stored, line):
    assert LineCounts.from_properties(stored).sentence() == line


@pytest.mark.parametrize(
    ("stored", "unusable", "none_usable"),
    [
        ({}, {}, False),
        ({"rejected/bad_label": 3, "lost_bytes": 9}, {BAD_LABEL: 3}, True),
        ({"rejected/bad_label": 3, "rejected/no_text": 1}, {BAD_LABEL: 3}, True),
        ({"rejected/no_text": 1, "rejected/repeated_header": 1}, {}, False),
        ({"rejected/bad_label": 3, "neutral": 1}, {BAD_LABEL: 3}, False),
        ({"rejected/bad_label": 3, "examples/eval": 1}, {BAD_LABEL: 3}, False),
        ({"rejected/bad_label": 3, f"rejected/{DUPLICATE}": 1}, {BAD_LABEL: 3}, False),
    ],
)
def test_duplicates_and_lines_without_a_review_are_not_unusable(stored, unusable, none_usable):
    counts = LineCounts.from_file(stored)
    assert (dict(counts.unusable), counts.no_line_usable) == (unusable, none_usable)
    harmless = counts.rejected[NO_TEXT] + counts.rejected[REPEATED_HEADER]
    assert counts.lines_with_review == counts.lines - harmless


def test_the_files_of_the_artifact_keep_their_keys(tmp_path):
    one = LineCounts.from_file({"examples/train": 2, "rejected/bad_label": 1, "lost_bytes": 7})
    by_file = {"/b.csv": one, "/a.csv": LineCounts()}
    write_counts(str(tmp_path), by_file, one)
    stored = {"examples/train": 2, "lost_bytes": 7, "rejected/bad_label": 1}
    assert (tmp_path / "files.jsonl").read_text().splitlines() == [
        '{"file": "/a.csv"}',
        '{"examples/train": 2, "file": "/b.csv", "lost_bytes": 7, "rejected/bad_label": 1}',
    ]
    assert (tmp_path / "summary.json").read_text() == json.dumps(stored, indent=2)
    assert list(read_counts(str(tmp_path))) == sorted(by_file.items(), key=lambda each: each[0])
    assert list(read_lines(str(tmp_path))) == []


def test_a_line_is_read_from_each_file_of_lines(tmp_path):
    line = {"file": "/data/a.csv", "position": 7, "reason": BAD_LABEL, "detail": "label: x"}
    for shard in ("lines-00000-of-00002.jsonl", "lines-00001-of-00002.jsonl"):
        (tmp_path / shard).write_text(json.dumps(line) + "\n")
    found = list(read_lines(str(tmp_path)))
    assert found == [RejectedLine(**line)] * 2
    assert found[0].file_position() == "a.csv:7"


def test_the_place_of_a_line_is_its_file_if_the_file_was_not_read_from_its_start():
    lines = [RejectedLine("/in/a.csv", 7, "no_text", "blank"), RejectedLine("/in/b", 0, "x", "y")]
    assert joined_lines(lines) == "a.csv:7 no_text (blank); b x (y)"


def test_counts_that_were_deleted_are_not_no_lines(tmp_path):
    with pytest.raises(InputError, match=r"files\.jsonl is missing"):
        list(read_counts(str(tmp_path)))
