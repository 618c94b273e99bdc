"""ReviewExampleGen's executor on real files: Examples, splits, limits, duplicates, accounting."""

import bz2
import gzip
import re
from collections import Counter, defaultdict

import pytest

from components.review_example_gen import units
from core.errors import InputError
from preprocessing.reading import pieces
from tests.components.example_gen import SPLITS, THREADS, label_of, line, read_files, text_of, write

pytestmark = pytest.mark.slow


@pytest.fixture
def inputs(tmp_path):
    return tmp_path / "input"


def test_an_example_has_the_features_of_the_contract_and_equal_texts_are_in_one_split(
    tmp_path, inputs
):
    write(inputs, "a.txt", [line(i % 100, 1 + i % 2) for i in range(400)])
    read = read_files(tmp_path, inputs)
    assert read.reading == "fastText: label (1 and 2)"
    seen = defaultdict(set)
    for split, examples in read.splits.items():
        for example in examples:
            assert set(example.features.feature) == {"text", "label"}
            number = int(text_of(example).split()[-1])
            assert text_of(example) == b"Title %d: body %d" % (number, number)
            assert label_of(example) == number % 2
            seen[number].add(split)
    assert len(seen) == 100 and sum(map(len, read.splits.values())) == 400
    assert all(len(splits) == 1 for splits in seen.values())
    # Nothing unpublished is left behind.
    left = sorted(path.name for path in (tmp_path / "examples").iterdir())
    assert left == ["Split-eval", "Split-test", "Split-train", "example_counts.json"]


def test_a_limit_keeps_the_same_reviews_however_files_are_cut(tmp_path, inputs, monkeypatch):
    # Each text occurs four times, and equal texts are kept or left out together.
    write(inputs, "a.txt", [line(i % 250, 1 + i // 250 % 2) for i in range(1000)])
    limits = {"train": 122, "eval": 21}
    reads = [read_files(tmp_path / "whole", inputs, max_examples=limits)]
    monkeypatch.setattr(pieces, "_PLAIN_BYTES", 2_000)
    monkeypatch.setattr(units, "_BYTES_PER_UNIT", 10_000)
    reads.append(read_files(tmp_path / "cut", inputs, runner=THREADS, max_examples=limits))
    assert {split: len(reads[0].splits[split]) for split in limits} == {"train": 120, "eval": 20}
    for split in limits:
        assert reads[0].content(split) == reads[1].content(split)
    assert sum(reads[0].counts.values()) == 1000
    assert reads[0].counts["over_max_examples"] == 1000 - 140 - len(reads[0].splits["test"])


def test_a_position_counts_from_the_beginning_of_its_file(tmp_path, inputs, monkeypatch):
    monkeypatch.setattr(pieces, "_PLAIN_BYTES", 500)
    monkeypatch.setattr(units, "_BYTES_PER_UNIT", 2_000)
    wrong = {
        ("a.txt", 1): "bad_label",
        ("a.txt", 77): "bad_label",
        ("a.txt", 200): "bad_label",
        ("b.txt", 3): "no_text",
        ("b.txt", 199): "bad_label",
    }
    held_out = {("a.txt", 150), ("b.txt", 20)}
    broken = {"no_text": "", "bad_label": "none"}
    for first, name in ((0, "a.txt"), (200, "b.txt")):
        reasons = [wrong.get((name, number)) for number in range(1, 201)]
        lines = [broken.get(reason, line(first + n)) for n, reason in enumerate(reasons, 1)]
        write(inputs, name, lines)
    write(inputs, "test.txt", [line(150), line(220)])
    read = read_files(tmp_path, inputs, {"train": "?.txt", "test": "test.txt"})
    expected = [(*place, reason) for place, reason in wrong.items()]
    expected += [(*place, "duplicate_across_splits") for place in held_out]
    assert read.places() == Counter(expected)


def test_every_line_is_an_example_a_neutral_or_rejected(tmp_path, inputs):
    stars = ["1", "2", "3", "4", "5", "x", ""]
    rows = [f'{{"overall": "{s}", "reviewText": "text {i} {s}"}}' for i in range(20) for s in stars]
    write(inputs, "a.jsonl", [*rows, "{", '{"overall": 5}'])
    read = read_files(tmp_path, inputs)
    assert sum(read.counts.values()) == 142
    assert read.counts["neutral"] == 20
    reasons = Counter(item["reason"] for item in read.rejected)
    assert reasons == {"bad_label": 40, "broken_json": 1, "no_text": 1}
    assert {f"rejected/{reason}": n for reason, n in reasons.items()}.items() <= read.counts.items()
    assert {"file", "position", "reason", "detail"} == set(read.rejected[0])


def test_too_many_rejected_lines_are_an_input_error_that_shows_the_first(tmp_path, inputs):
    write(inputs, "a.txt", [line(1), "no label", line(2), "none here either"])
    with pytest.raises(InputError) as error:
        read_files(tmp_path, inputs, max_rejected_fraction=0.4)
    assert "2 of 4 lines (50.0%) cannot be used" in str(error.value)
    assert "a.txt:2 bad_label (no label); a.txt:4 bad_label" in str(error.value)


def test_one_label_that_contradicts_the_scale_is_an_input_error(tmp_path, inputs):
    inputs.mkdir()
    # Only the head of a gzip file is inspected.
    rows = [f"{1 + i % 2},review {i} {'of some words ' * 9}" for i in range(9_000)]
    text = "\n".join(["label,text", *rows, "4,late", "x,no label", ""])
    (inputs / "a.csv.gz").write_bytes(gzip.compress(text.encode(), 1))
    with pytest.raises(InputError) as error:
        read_files(tmp_path / "guessed", inputs)
    assert "1 of the labels contradict the scale" in str(error.value)
    assert "data.labels" in str(error.value)
    assert "a.csv.gz:9002 label_of_another_scale (label: 4)" in str(error.value)
    read = read_files(tmp_path / "set", inputs, read={"label_map": {"1": 0, "2": 1}})
    assert read.counts["rejected/bad_label"] == 2


def test_nothing_to_train_on_is_an_input_error(tmp_path, inputs):
    write(inputs, "train.jsonl", ['{"overall": 3, "reviewText": "so so"}'])
    write(inputs, "train.txt", [line(1)] * 50)
    limits = {"train": 9, "eval": 9, "test": 9}
    with pytest.raises(InputError) as error:
        read_files(tmp_path, inputs, {"train": "*"}, max_examples=limits)
    assert str(error.value) == (
        "no review is left for training: of 51 lines with text 0 were rejected, 1 neutral, "
        "0 duplicates of held-out reviews, 50 over data.max_examples"
    )


def test_only_a_damaged_block_is_lost_and_its_position_is_reported(tmp_path, inputs):
    inputs.mkdir()
    # Twenty blocks, of which one is damaged.
    lines = b"".join(b"__label__%d review %d: %r\n" % (n % 2 + 1, n, n**9) for n in range(45_000))
    archive = bytearray(bz2.compress(lines, 1))
    size, middle = len(archive), len(archive) // 2
    archive[middle : middle + 40] = bytes(byte ^ 0xFF for byte in archive[middle : middle + 40])
    (inputs / "a.bz2").write_bytes(archive)
    with pytest.raises(InputError) as error:
        read_files(tmp_path / "strict", inputs, max_rejected_fraction=0.01)
    assert f"of {size:,} bytes" in str(error.value)
    assert re.search(r"a\.bz2:\d+ corrupt_archive \(damaged at byte [\d,]+", str(error.value))
    read = read_files(tmp_path, inputs, max_rejected_fraction=0.2)
    assert 45_000 * 0.85 < sum(read.counts[f"examples/{split}"] for split in SPLITS) < 45_000
    (record,) = read.rejected
    assert record["reason"] == "corrupt_archive" and record["file"].endswith("a.bz2")
    at = int(re.search(r"at byte ([\d,]+) of the", record["detail"])[1].replace(",", ""))
    assert size * 0.45 < at < size * 0.6
    assert 0 < read.counts["lost_bytes"] < size * 0.15
    assert read.counts["rejected/corrupt_archive"] == 1


def test_lines_in_another_encoding_are_an_input_error_with_the_remedy(tmp_path, inputs):
    inputs.mkdir()
    (inputs / "a.txt").write_bytes("\n".join(line(n) + " café" for n in range(9)).encode("cp1252"))
    with pytest.raises(InputError, match=r"9 of 9 lines .*`iconv -f WINDOWS-1252 -t UTF-8"):
        read_files(tmp_path, inputs)
