"""Batch scoring of files that are empty, or of which a part cannot be read, in every format."""

import gzip
import io
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.errors import InputError
from tests.preprocessing.reading.review_files import COMPRESS, parquet_bytes, write
from tests.preprocessing.reading.test_contents import tar
from tests.serving.batch.outputs import FILES, TEXTS, rejected, rows, wanted

pytestmark = pytest.mark.slow


def test_an_empty_file_and_a_file_without_any_review(score, tmp_path):
    output = tmp_path / "scores.csv"
    assert score(write(tmp_path, "empty.txt", "")).reviews == 0
    assert rows(output) == []
    path = write(tmp_path, "blank.txt", "\n\n")
    assert score(path).rejected == {"no_text": 2}
    assert rows(output) == []
    none = {
        "header.csv": b"rating,text\n",
        "none.parquet": parquet_bytes({"text": pa.array([], pa.string())}),
    }
    for name, end in zip(("in.txt", "in.ft.txt", "in.csv", "in.jsonl"), COMPRESS, strict=True):
        none[name + end] = COMPRESS[end](b"")
    paths = [write(tmp_path, name, data) for name, data in none.items()]
    assert score(*paths, output="scores.parquet")[:3] == (0, {}, 0)
    assert rows(tmp_path / "scores.parquet") == []


def test_a_tar_archive_is_refused_as_a_file_and_as_standard_input(score, tmp_path, monkeypatch):
    path = write(tmp_path, "reviews.txt.gz", gzip.compress(tar()))
    with pytest.raises(InputError, match=r"reviews\.txt\.gz contains a tar archive: unpack it"):
        score(path)
    with open(path) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        with pytest.raises(InputError, match=r"standard-input.* contains a tar archive"):
            score("-")
    assert not (tmp_path / "scores.csv").exists()


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


def test_a_truncated_archive_is_scored_up_to_its_end(score, tmp_path):
    archive = gzip.compress("\n".join(f"{text} {text.encode().hex()}" for text in TEXTS).encode())
    path = write(tmp_path, "cut.txt.gz", archive[: len(archive) // 2])
    summary = score(path)
    assert summary.rejected == {"corrupt_archive": 1}
    assert 1000 < summary.reviews < 2000
    [(_, position)] = rejected(tmp_path / "scores.csv.rejected.jsonl")
    assert position == summary.reviews + 1


def test_a_half_broken_csv_file_loses_only_the_broken_records(score, tmp_path):
    lines = ["rating,title,text", '5,"a title', 'with a line end","bad phone"', "1,t,bad phone"]
    lines += ["4,t", '1,"t"t,bad phone', "", "5,t,good,more", "1,t,\udcff", "5,t,", "2,t,bad one"]
    # The quote is never closed. The lines behind it are records of their own.
    lines += ['5,t,"good phone', "1,t,bad phone", ",,good without a label"]
    data = "\n".join(lines).encode("utf-8", "surrogateescape")
    path = write(tmp_path, "half.csv", data)
    summary = score(path)
    reasons = {5: "broken_csv", 6: "broken_csv", 7: "no_text", 8: "broken_csv"}
    reasons |= {9: "invalid_utf8", 12: "broken_csv"}
    found = rejected(tmp_path / "scores.csv.rejected.jsonl")
    assert found == {(path, position): reason for position, reason in reasons.items()}
    labels = {2: "negative", 4: "negative", 10: "negative", 11: "negative"}
    labels |= {13: "negative", 14: "positive"}
    assert [row[1::2] for row in rows(tmp_path / "scores.csv")] == list(labels.items())
    assert summary.reviews == len(labels)


def test_a_parquet_file_with_a_damaged_row_group_loses_only_its_rows(score, tmp_path):
    texts = [f"{text} {'and more ' * 50}" for text in TEXTS[:30]]
    data = bytearray(parquet_bytes({"text": texts}, row_group_size=10))
    column = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(1).column(0)
    start = column.dictionary_page_offset
    data[start : start + 40] = b"\xff" * 40
    path = write(tmp_path, "half.parquet", bytes(data))
    other = write(tmp_path, "other.txt", "good one\n")
    summary = score(path, other)
    assert summary[:3] == (21, {"corrupt_archive": 10}, 0)
    found = rejected(tmp_path / "scores.csv.rejected.jsonl")
    assert found == {(path, position): "corrupt_archive" for position in range(11, 21)}
    around = wanted(path, texts[:10]) + wanted(path, texts[20:], first=21)
    assert rows(tmp_path / "scores.csv") == around + wanted(other, ["good one"])


@pytest.mark.parametrize(("end", "compressed"), zip([0, 4, 0.5, -1], COMPRESS, strict=True))
def test_a_truncated_parquet_file_is_refused_before_anything_is_written(
    score, tmp_path, end, compressed
):
    """The index of the rows is at the end of a Parquet file, so no row can be counted."""
    data = FILES["parquet"]
    part = data[: int(end * len(data)) if isinstance(end, float) else end]
    path = write(tmp_path, f"cut.parquet{compressed}", COMPRESS[compressed](part))
    other = write(tmp_path, "other.txt", "good one\n")
    with pytest.raises(InputError, match=f"^{path} cannot be opened as a Parquet file"):
        score(path, other)
    assert {found.name for found in tmp_path.iterdir()} == {f"cut.parquet{compressed}", "other.txt"}
