"""Duplicates of reviews in eval and test files are found in every file, with every runner."""

import pytest

from components.review_example_gen import held_out
from pipeline.config import PipelineConfig
from platforms.beam import beam_args
from preprocessing.reading import pieces
from tests.components.example_gen import RUNNERS, line, read_files, write

pytestmark = pytest.mark.slow

LIMITS = {"train": 300, "test": 50}


@pytest.fixture
def many_units(monkeypatch):
    # A unit has several pieces, and its keys are in several elements.
    monkeypatch.setattr(pieces, "_PLAIN_BYTES", 2_000)
    monkeypatch.setattr("components.review_example_gen.units._BYTES_PER_UNIT", 10_000)
    monkeypatch.setattr(held_out, "_KEYS_AT_ONCE", 20)


def test_duplicates_are_found_in_one_and_in_two_processes(tmp_path, many_units):
    one, two = read(tmp_path / "one"), read(tmp_path / "two", RUNNERS["two processes"])
    compare(one, two)


@pytest.mark.exhaustive
@pytest.mark.xdist_group("flink")
def test_duplicates_are_found_on_flink(tmp_path, many_units, flink_jars):
    flink = {"jars": str(flink_jars), "parallelism": 2}
    config = {"paths": {"root": str(tmp_path)}, "beam": {"runner": "flink", "flink": flink}}
    runner = beam_args(PipelineConfig.model_validate(config))
    compare(read(tmp_path / "memory"), read(tmp_path / "flink", runner))


def read(folder, runner=()):
    contents = {
        "test": range(0, 100),
        "eval": range(60, 200),
        "train-0": [*range(40, 90), *range(150, 700)],
        "train-1": [*range(190, 210), *range(600, 1000), *range(90, 110)],
    }
    folder.mkdir()
    for name, numbers in contents.items():
        write(folder / "input", f"{name}.txt", [*map(line, numbers), "no label"])
    patterns = {"train": "train-*", "eval": "eval*", "test": "test*"}
    return read_files(folder, folder / "input", patterns, runner, max_examples=LIMITS)


def compare(first, other):
    assert first.counts["rejected/duplicate_across_splits"] == 40 + 50 + 50 + 10 + 20
    for name, limit in LIMITS.items():
        assert limit - 2 <= len(first.splits[name]) <= limit
    assert other.counts == first.counts
    assert other.by_file == first.by_file
    assert other.places() == first.places()
    for split in first.splits:
        assert other.content(split) == first.content(split)
