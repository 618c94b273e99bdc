"""Duplicates of reviews in eval and test files are found in every file, with several workers."""

import pytest

from components.review_example_gen import splits, units
from preprocessing.reading import pieces
from tests.components.example_gen import THREADS, line, read_files, write

pytestmark = pytest.mark.slow

LIMITS = {"train": 300, "test": 50}
CONTENTS = {
    "test": range(0, 100),
    "eval": range(60, 200),
    "train-0": [*range(40, 90), *range(150, 700)],
    "train-1": [*range(190, 210), *range(600, 1000), *range(90, 110)],
}
PATTERNS = {"train": "train-*", "eval": "eval*", "test": "test*"}


def test_duplicates_are_found_with_one_and_with_three_workers(tmp_path, monkeypatch):
    # A unit has several pieces, and its keys are in several elements.
    monkeypatch.setattr(pieces, "_PLAIN_BYTES", 2_000)
    monkeypatch.setattr(units, "_BYTES_PER_UNIT", 10_000)
    monkeypatch.setattr(splits, "_KEYS_AT_ONCE", 20)
    inputs = tmp_path / "input"
    for name, numbers in CONTENTS.items():
        write(inputs, f"{name}.txt", [*map(line, numbers), "no label"])
    # Duplicates are readable, so they do not count as unusable lines.
    options = {"max_examples": LIMITS, "max_rejected_fraction": 0.01}
    first, other = (
        read_files(tmp_path / f"{len(runner)}", inputs, PATTERNS, runner, **options)
        for runner in ((), THREADS)
    )
    assert first.counts["rejected/duplicate_across_splits"] == 40 + 50 + 50 + 10 + 20
    assert first.by_file["test.txt"].keys() == {
        *("examples/test", "over_max_examples", "rejected/bad_label")
    }
    assert not first.texts("train") & (first.texts("eval") + first.texts("test"))
    for name, limit in LIMITS.items():
        assert limit - 2 <= len(first.splits[name]) <= limit
    assert other.counts == first.counts
    assert other.by_file == first.by_file
    assert other.places() == first.places()
    for split in first.splits:
        assert other.content(split) == first.content(split)
