"""Input that is sorted by label, or changes periodically, is mixed in the written Examples."""

from itertools import chain
from pathlib import Path

import pytest
import tensorflow as tf

from components.line_counts import SPLITS
from components.review_example_gen import units
from preprocessing.reading.columns import Layout
from preprocessing.reading.pieces import Piece
from tests.components.example_gen import label_of, read_files, text_of, write

pytestmark = pytest.mark.slow


def line(label, number):
    return f"__label__{label + 1} Title {number}: it is number {number} of all"


def shards(read, split):
    """Yield the Examples of each file of a split."""
    for path in sorted(Path(read.examples.uri, f"Split-{split}").iterdir()):
        records = tf.data.TFRecordDataset(str(path), "GZIP")
        yield [tf.train.Example.FromString(record.numpy()) for record in records]


def share(labels):
    return sum(labels) / len(labels)


def test_a_large_input_is_mixed_in_every_file_that_is_written(tmp_path, monkeypatch):
    # Pieces, units and files are a thousandth of their usual size.
    monkeypatch.setattr(units, "_BYTES_PER_UNIT", 128 << 10)
    monkeypatch.setattr(units, "_BYTES_PER_SHARD", 12_600)
    monkeypatch.setattr("preprocessing.reading.pieces._PLAIN_BYTES", 8 << 10)
    for label in (0, 1):
        # Each review occurs twice.
        lines = [line(label, n // 2) for n in range(label * 4000, label * 4000 + 4000)]
        write(tmp_path / "in", f"{label}.txt", lines)
    read = read_files(tmp_path, tmp_path / "in")
    for split in SPLITS:
        written = list(shards(read, split))
        # Three units write ten shards each. The hash of the splits has ten buckets as well, so
        # shards by the same bits of the hash would be unequal.
        assert len(written) == 30
        texts = [list(map(text_of, shard)) for shard in written]
        mean = sum(map(len, texts)) / 30
        assert all(0.3 * mean < len(shard) < 1.9 * mean for shard in texts)
        # Equal texts of a unit are in one shard. A few are at the end of a piece, and in two units.
        assert sum(len(set(shard)) for shard in texts) < 1.1 * len(set(chain(*texts)))
    for shard in shards(read, "train"):
        labels = list(map(label_of, shard))
        assert 0.25 < share(labels) < 0.75
        # Half of a file is also mixed: a training reads the first Examples of each file first.
        assert 0.15 < share(labels[: len(labels) // 2]) < 0.85


@pytest.mark.parametrize("period", [2, 400])
def test_units_mix_an_input_whose_labels_change_periodically(monkeypatch, period):
    monkeypatch.setattr(units, "_BYTES_PER_UNIT", 100)
    # Half of a period has one label, the other half has the other label.
    labels = [number * 2 // period % 2 for number in range(400)]
    sources = [
        units.Source("all", Piece("a.txt", Layout("csv"), number, 0, None, False, 1))
        for number in range(len(labels))
    ]
    shared = units.in_units(sources)
    assert shared == units.in_units(sources)  # deterministic
    assert [unit.number for unit in shared] == [0, 1, 2, 3]
    assert sorted(source for unit in shared for source in unit.sources) == sources
    for unit in shared:
        read = [source.piece.number for source in unit.sources]
        assert 0.3 < share([labels[number] for number in read]) < 0.7
        # The pieces of a unit are from the whole input, and so is their first half.
        assert sorted(number // 4 for number in read) == list(range(100))
        assert 0.25 < share([number < 200 for number in read[:50]]) < 0.75
