"""The join of held-out reviews with all reviews: by broadcast and by shuffle."""

import bz2
from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.review_example_gen import held_out, splits
from components.review_example_gen.held_out import Keys, held_out_bytes, in_ranges, join_range
from components.review_example_gen.units import Source
from pipeline.config import PipelineConfig
from platforms.beam import beam_args
from preprocessing.reading import cut
from preprocessing.reading.columns import Layout
from preprocessing.reading.cut import cut_file
from preprocessing.reading.find import find_sources
from tests.components.test_review_example_gen import RUNNERS, line, read_files, write

GROUPS = ("train", "eval", "test")
# Small numbers are frequent in several groups. They and the large ones are in other ranges.
SOME_KEYS = st.lists(
    st.integers(0, 9).map(lambda n: (n % 2 << 63) + n) | st.integers(0, 2**64 - 1), max_size=20
)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from(GROUPS), SOME_KEYS), max_size=8),
    st.integers(1, 9),
)
def test_the_shuffle_finds_the_duplicates_of_the_broadcast(contents, ranges):
    everything = [
        Keys(unit, group, np.unique(np.array(keys, np.uint64))) for unit, group, keys in contents
    ]
    broadcast = held_out.join_held_out(everything)
    by_range, matches = defaultdict(list), defaultdict(list)
    for found in everything:
        for number, part in in_ranges(found, ranges):
            by_range[number].append(part)
    assert set(by_range) <= set(range(ranges))
    for of_range in by_range.values():
        for unit, match in join_range(of_range):
            matches[unit].append(match)
    for unit, group, keys in everything:
        own = splits.held_out_keys(matches[unit])
        for name in set(splits.HIGHER_GROUPS[group]) & set(broadcast):
            expected = splits.are_in(keys, broadcast[name])
            assert splits.are_in(keys, own.get(name, keys[:0])).tolist() == expected.tolist()
        # A unit gets no keys but its own.
        of_unit = [keys for other, _, keys in everything if other == unit]
        assert all(np.isin(each, np.concatenate(of_unit)).all() for each in own.values())


def test_ranges_have_equal_parts_of_the_keys():
    keys = np.sort(np.random.default_rng(0).integers(0, 2**64, 30_000, np.uint64))
    sizes = [len(part.keys) for _, part in in_ranges(Keys(0, "train", keys), 30)]
    assert len(sizes) == 30
    assert all(800 < size < 1200 for size in sizes)


def test_the_text_of_an_archive_is_overestimated(tmp_path):
    lines = [line(n) for n in range(2000)]
    plain = write(tmp_path / "plain", "test.txt", lines) / "test.txt"
    size = plain.stat().st_size
    write(tmp_path / "plain", "train.txt", lines)
    packed = write(tmp_path / "packed", "train.txt", lines) / "test.txt"
    packed.write_bytes(bz2.compress(plain.read_bytes()))
    assert estimate(tmp_path / "plain") == size
    assert estimate(tmp_path / "packed") == pytest.approx(6.2 * packed.stat().st_size, rel=0.01)


def estimate(folder):
    files = find_sources(str(folder), {"train": "train.txt", "test": "test.txt"})
    return held_out_bytes(
        files,
        [
            Source(file.group, piece)
            for file in files
            for piece in cut_file(file.path, Layout("fasttext"))
        ],
    )


CAPS = {"train": 300, "test": 50}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("runner", "caps"), [("in memory", {}), *((name, CAPS) for name in RUNNERS)]
)
def test_the_shuffle_writes_what_the_broadcast_writes(tmp_path, monkeypatch, runner, caps):
    compare(tmp_path, monkeypatch, RUNNERS[runner], caps)


@pytest.mark.slow
@pytest.mark.xdist_group("flink")
def test_the_shuffle_on_flink(tmp_path, monkeypatch, flink_jars):
    flink = {"jars": str(flink_jars), "parallelism": 2}
    config = {"paths": {"root": str(tmp_path)}, "beam": {"runner": "flink", "flink": flink}}
    runner = beam_args(PipelineConfig.model_validate(config))
    compare(tmp_path, monkeypatch, runner, CAPS)


def compare(tmp_path, monkeypatch, runner, caps):
    """Read the same files with a broadcast in memory and with a shuffle on the runner."""
    inputs = tmp_path / "input"
    contents = {
        "test": range(0, 100),
        "eval": range(60, 200),
        "train-0": [*range(40, 90), *range(150, 700)],
        "train-1": [*range(190, 210), *range(600, 1000), *range(90, 110)],
    }
    for name, numbers in contents.items():
        write(inputs, f"{name}.txt", [*map(line, numbers), "no label"])
    patterns = {"train": "train-*", "eval": "eval*", "test": "test*"}
    # A unit has several pieces, and its places are in several files.
    monkeypatch.setattr(cut, "_PLAIN_BYTES", 2_000)
    monkeypatch.setattr("components.review_example_gen.units._BYTES_PER_UNIT", 10_000)
    monkeypatch.setattr("components.review_example_gen.cap._PLACES_PER_FILE", 30)
    broadcast = read_files(tmp_path / "broadcast", inputs, patterns, max_examples=caps)
    monkeypatch.setattr(held_out, "BROADCAST_BYTES", 0)
    monkeypatch.setattr(held_out, "_broadcast", None)
    monkeypatch.setattr(held_out, "_BYTES_PER_RANGE", 9_000)
    monkeypatch.setattr(held_out, "_KEYS_AT_ONCE", 20)
    shuffle = read_files(tmp_path / "shuffle", inputs, patterns, runner, max_examples=caps)
    assert shuffle.counts == broadcast.counts
    assert shuffle.by_file == broadcast.by_file
    assert shuffle.rejected == broadcast.rejected
    assert broadcast.counts["rejected/duplicate_across_splits"] == 40 + 50 + 50 + 10 + 20
    for split in GROUPS:
        assert serialized(shuffle, split) == serialized(broadcast, split)
        assert len(broadcast.splits[split]) == caps.get(split, len(broadcast.splits[split]))


def serialized(read, split):
    return Counter(e.SerializeToString(deterministic=True) for e in read.splits[split])
