"""Batch scoring of files that are empty, or of which a part cannot be read, in every format."""

import gzip

import pyarrow as pa
import pytest

from preprocessing.reading.records import ReadOptions
from tests.preprocessing.reading.review_files import parquet_bytes, write
from tests.serving.batch.outputs import TEXTS, rejected, rows

pytestmark = pytest.mark.slow


def test_an_empty_file_and_a_file_without_any_review(score, tmp_path):
    output = tmp_path / "scores.csv"
    assert score(write(tmp_path, "empty.txt", "")).reviews == 0
    assert rows(output) == []
    path = write(tmp_path, "blank.txt", "\n\n")
    assert score(path).rejected == {"no_text": 2}
    assert rows(output) == []
    none = parquet_bytes({"text": pa.array([], pa.string())})
    paths = [write(tmp_path, "header.csv", b"rating,text\n"), write(tmp_path, "in.parquet", none)]
    assert score(*paths, output="scores.parquet")[:3] == (0, {}, 0)
    assert rows(tmp_path / "scores.parquet") == []


def test_every_line_is_in_the_output_or_in_the_rejected_file(score, small_units, tmp_path):
    lines = [text.encode() for text in TEXTS]
    broken = {10: b"", 11: b"\xff", 1000: b"a\0", 2999: b"   "}
    for index, line in broken.items():
        lines[index] = line
    path = write(tmp_path, "half.txt", b"\n".join(lines))
    other = write(tmp_path, "other.jsonl", '{"text": "good"}\n{"text"\n{"text": ""}\n')
    summary = score(path, other)
    reasons = {
        (path, 11): "no_text",
        (path, 12): "invalid_utf8",
        (path, 1001): "invalid_utf8",
        (path, 3000): "no_text",
        (other, 2): "broken_json",
        (other, 3): "no_text",
    }
    assert rejected(tmp_path / "scores.csv.rejected.jsonl") == reasons
    assert summary.rejected == {"no_text": 3, "invalid_utf8": 2, "broken_json": 1}
    scored = {row[:2] for row in rows(tmp_path / "scores.csv")}
    everything = {(path, n) for n in range(1, 3001)} | {(other, n) for n in range(1, 4)}
    assert scored == everything - set(reasons)
    # The rejected lines of an earlier output are removed.
    score(write(tmp_path, "fine.txt", "good"))
    assert not (tmp_path / "scores.csv.rejected.jsonl").exists()


def test_records_of_several_datasets_are_scored_with_their_ids(score, tmp_path):
    lines = [
        '{"rating": 5, "title": "t", "text": "good", "asin": "A"}',
        '{"overall": 1, "summary": "t", "reviewText": "bad", "asin": "B"}',
        '{"rating": 1, "title": "t", "review": "bad", "asin": "C"}',
        '{"grade": 1, "comment": "bad", "asin": "D"}',
    ]
    path = write(tmp_path, "mixed.jsonl", "\n".join(lines))
    summary = score(path, options=ReadOptions(id="asin"))
    assert (summary.reviews, summary.rejected) == (3, {"unknown_columns": 1})
    output = tmp_path / "scores.csv"
    assert rows(output, "id") == ["A", "B", "C"]
    assert rows(output, "label") == ["positive", "negative", "negative"]
    assert rejected(tmp_path / "scores.csv.rejected.jsonl") == {(path, 4): "unknown_columns"}


def test_a_truncated_archive_is_scored_up_to_its_end(score, tmp_path):
    archive = gzip.compress("\n".join(f"{text} {text.encode().hex()}" for text in TEXTS).encode())
    path = write(tmp_path, "cut.txt.gz", archive[: len(archive) // 2])
    summary = score(path)
    assert summary.rejected == {"corrupt_archive": 1}
    assert 1000 < summary.reviews < 2000
    [(_, position)] = rejected(tmp_path / "scores.csv.rejected.jsonl")
    assert position == summary.reviews + 1


def test_a_file_without_a_usable_line_is_named_and_a_header_is_no_review(score, tmp_path):
    good = write(tmp_path, "good.csv", b"rating,text\n5,good\nrating,text\n1,bad\n")
    bad = write(tmp_path, "bad.jsonl", '{"rating": 1, "text": "\\ud800"}\n\n{"text": {}}\n')
    blank = write(tmp_path, "blank.txt", "\n")
    mixed = write(tmp_path, "mixed.jsonl", '{"rating": 4, "text": "good"}\nbroken\n')
    summary = score(good, bad, blank, mixed, options=ReadOptions(id="rating"))
    assert summary.reviews == 3
    assert rejected(tmp_path / "scores.csv.rejected.jsonl")[good, 3] == "repeated_header"
    assert rows(tmp_path / "scores.csv", "id") == ["5", "1", "4"]
    assert summary.unused == [
        f"no line of {bad} can be used: invalid_utf8 1, no_text 1, wrong_type 1; the first: \\ud800"
    ]
