"""Input that is sorted by label: the written Examples and the sample for statistics are mixed."""

from itertools import chain
from pathlib import Path

import pytest
import tensorflow as tf
import tensorflow_data_validation as tfdv
from tensorflow_metadata.proto.v0 import statistics_pb2
from tfx.types import artifact_utils, standard_artifacts

from components.data_gate import class_counts
from components.review_example_gen import units
from components.statistics_gen import Executor
from preprocessing.reading.columns import Layout
from preprocessing.reading.pieces import Piece
from tests.components.test_fast_path import CONTEXT, read_examples, schema
from tests.examples import example, write

pytestmark = pytest.mark.slow


def line(label, number):
    return f"__label__{label + 1} Title {number}: it is number {number} of all\n"


def files(folder, *contents):
    folder.mkdir()
    for number, content in enumerate(contents):
        (folder / f"{number:02d}.txt").write_text("".join(content))
    return folder


def features_of_shards(examples, split):
    for path in sorted(Path(examples.uri, f"Split-{split}").iterdir()):
        records = tf.data.TFRecordDataset(str(path), "GZIP")
        yield [tf.train.Example.FromString(record.numpy()).features.feature for record in records]


def shards(examples, split="train"):
    return [
        [feature["label"].int64_list.value[0] for feature in of_shard]
        for of_shard in features_of_shards(examples, split)
    ]


def make_statistics(examples, folder, max_examples):
    """Run the real component on the Examples and return its output."""
    statistics = standard_artifacts.ExampleStatistics()
    statistics.uri = str(folder / "statistics")
    Executor(CONTEXT).Do(
        {"examples": [examples], "schema": [schema(folder)]},
        {"statistics": [statistics]},
        {
            "stats_options_json": tfdv.StatsOptions().to_json(),
            "exclude_splits": "null",
            "sample_rate_by_split": "null",
            "max_examples": max_examples,
        },
    )
    return statistics


def counts_by_split(examples, folder, max_examples):
    """Return split -> label -> its Examples in the sample, which must have no anomaly."""
    statistics = make_statistics(examples, folder, max_examples)
    expected = tfdv.load_schema_text(str(folder / "schema" / "schema.pbtxt"))
    found = {}
    for split in artifact_utils.decode_split_names(examples.split_names):
        (file,) = Path(statistics.uri, f"Split-{split}").iterdir()
        message = statistics_pb2.DatasetFeatureStatisticsList.FromString(file.read_bytes())
        assert not tfdv.validate_statistics(message, expected).anomaly_info
        found[split] = dict(enumerate(class_counts(statistics.uri, split).values()))
    return found


def share(labels):
    return sum(labels) / len(labels)


def test_files_of_one_label_each_are_mixed_and_sampled_without_bias(tmp_path, monkeypatch):
    # The files are a thousandth of the usual size, so the chunks that are read are too.
    monkeypatch.setattr("preprocessing.reading.pieces._READ", 1 << 10)
    of_one_label = ([line(n % 2, n * 1000 + i) for i in range(1000)] for n in range(8))
    examples = read_examples(files(tmp_path / "in", *of_one_label), tmp_path)
    (train,), (evaluation,) = shards(examples), shards(examples, "eval")
    # The files are read in turns, so that each tenth of a written file has both labels.
    tenth = len(train) // 10
    for labels in (evaluation, *(train[n * tenth : (n + 1) * tenth] for n in range(10))):
        assert 0.35 < share(labels) < 0.65
    found = counts_by_split(examples, tmp_path, 1000)
    of_train = found["train"]
    assert 850 < sum(of_train.values()) < 1150
    assert 0.4 < of_train[1] / sum(of_train.values()) < 0.6
    # The sample of a smaller split is the whole split.
    assert sum(found["eval"].values()) == len(evaluation) < 1000


def test_a_large_input_is_mixed_in_every_file_that_is_written(tmp_path, monkeypatch):
    # Pieces, units and files are a thousandth of their usual size.
    monkeypatch.setattr("components.review_example_gen.units._BYTES_PER_UNIT", 128 << 10)
    monkeypatch.setattr("components.review_example_gen.units._BYTES_PER_SHARD", 12_600)
    monkeypatch.setattr("preprocessing.reading.pieces._PLAIN_BYTES", 8 << 10)
    reviews = 4000
    inputs = files(
        tmp_path / "in",
        # Each review occurs twice.
        (line(0, n // 2) for n in range(reviews)),
        (line(1, n // 2) for n in range(reviews, 2 * reviews)),
    )
    examples = read_examples(inputs, tmp_path)
    for split in ("train", "eval", "test"):
        written = list(features_of_shards(examples, split))
        # Three units write ten shards each. The hash of the splits has ten buckets as well, so
        # shards by the same bits of the hash would be unequal.
        assert len(written) == 30
        texts = [[feature["text"].bytes_list.value[0] for feature in shard] for shard in written]
        mean = sum(map(len, texts)) / 30
        assert all(0.3 * mean < len(shard) < 1.9 * mean for shard in texts)
        # Equal texts of a unit are in one shard. A few are at the end of a piece, and in two units.
        assert sum(len(set(shard)) for shard in texts) < 1.1 * len(set(chain(*texts)))
    for labels in shards(examples):
        assert 0.25 < share(labels) < 0.75
        # Half of a file is also mixed: a training reads the first Examples of each file first.
        assert 0.15 < share(labels[: len(labels) // 2]) < 0.85


@pytest.mark.parametrize("period", [2, 400])
def test_units_mix_an_input_whose_labels_change_periodically(monkeypatch, period):
    monkeypatch.setattr("components.review_example_gen.units._BYTES_PER_UNIT", 100)
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
        assert len(read) == 100
        assert 0.3 < share([labels[number] for number in read]) < 0.7
        # The pieces of a unit are from the whole input, and so is their first half.
        assert sorted(number // 4 for number in read) == list(range(100))
        assert 0.25 < share([number < 200 for number in read[:50]]) < 0.75


def write_shards(folder, *contents):
    """Write a train split with a file for each list of labels; return the Examples."""
    examples = standard_artifacts.Examples()
    examples.uri = str(folder / "examples")
    examples.split_names = artifact_utils.encode_split_names(["train"])
    split = folder / "examples" / "Split-train"
    split.mkdir(parents=True)
    for number, labels in enumerate(contents):
        path = split / f"data_tfrecord-{number:05d}-of-{len(contents):05d}.gz"
        texts = (f"{number} {place}" for place in range(len(labels)))
        write(path, map(lambda text, label: example(text=text, label=label), texts, labels))
    return examples


def test_a_sample_of_files_with_one_label_each_is_unbiased(tmp_path):
    examples = write_shards(tmp_path, [0] * 6000, [1] * 2000, [], [0] * 3000, [1] * 1000)
    found = counts_by_split(examples, tmp_path, 1500)["train"]
    assert 1200 < sum(found.values()) < 1800
    assert 0.2 < found[1] / sum(found.values()) < 0.3


@pytest.mark.parametrize("max_examples", [1, 2, 100])
def test_all_examples_are_read_if_the_sample_lacks_a_class(tmp_path, max_examples):
    examples = write_shards(tmp_path, [0] * 3000 + [1], [0] * 3000)
    assert counts_by_split(examples, tmp_path, max_examples)["train"] == {0: 6000, 1: 1}
