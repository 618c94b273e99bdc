"""Input that is sorted by label: what is written and what is looked at is mixed."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import pytest
import tensorflow as tf
import tensorflow_data_validation as tfdv
from tensorflow_metadata.proto.v0 import statistics_pb2
from tfx.types import artifact_utils, standard_artifacts

from components.statistics.executor import Executor
from tests.components.test_fast_path import CONTEXT, read_examples, schema

pytestmark = pytest.mark.slow


def line(label, number):
    return f"__label__{label + 1} Title {number}: it is number {number} of all\n"


def files(folder, *contents):
    folder.mkdir()
    for number, content in enumerate(contents):
        (folder / f"{number:02d}.txt").write_text("".join(content))
    return folder


def by_product_and_label(folder, files_of, reviews):
    """Files in turns of negative and of positive reviews."""
    return files(
        folder,
        *(
            [line(number % 2, number * reviews + n) for n in range(reviews)]
            for number in range(files_of)
        ),
    )


def labels_of(path):
    records = tf.data.TFRecordDataset(str(path), "GZIP").as_numpy_iterator()
    parsed = (tf.train.Example.FromString(record).features.feature for record in records)
    return [feature["label"].int64_list.value[0] for feature in parsed]


def shards(examples, split="train"):
    return [labels_of(path) for path in sorted(Path(examples.uri, f"Split-{split}").iterdir())]


def look_at(examples, folder, max_examples):
    """Split -> its statistics, by the real component; none of them has an anomaly."""
    statistics = standard_artifacts.ExampleStatistics()
    statistics.uri = str(folder / "statistics")
    Executor(CONTEXT).Do(
        {"examples": [examples], "schema": [schema(folder)]},
        {"statistics": [statistics]},
        {
            "stats_options_json": tfdv.StatsOptions(feature_allowlist=["text", "label"]).to_json(),
            "exclude_splits": "null",
            "sample_rate_by_split": "null",
            "max_examples": max_examples,
        },
    )
    found = {}
    for split in artifact_utils.decode_split_names(examples.split_names):
        (file,) = Path(statistics.uri, f"Split-{split}").iterdir()
        found[split] = statistics_pb2.DatasetFeatureStatisticsList.FromString(file.read_bytes())
        expected = tfdv.load_schema_text(str(folder / "schema" / "schema.pbtxt"))
        assert not tfdv.validate_statistics(found[split], expected).anomaly_info
    return found


def counts(statistics):
    """Label -> how many Examples with it were looked at."""
    (label,) = [f for f in statistics.datasets[0].features if f.path.step[0] == "label"]
    return {int(b.label): b.sample_count for b in label.string_stats.rank_histogram.buckets}


def share(labels):
    return sum(labels) / len(labels)


def test_files_of_one_label_each_are_mixed_and_fairly_looked_at(tmp_path):
    examples = read_examples(by_product_and_label(tmp_path / "in", 8, 1000), tmp_path)
    for labels in chain(shards(examples), shards(examples, "eval")):
        assert 0.4 < share(labels) < 0.6
    found = counts(look_at(examples, tmp_path, 800)["train"])
    assert 650 < sum(found.values()) < 950
    assert 0.4 < found[1] / sum(found.values()) < 0.6


def test_a_large_input_is_mixed_in_every_file_that_is_written(tmp_path, monkeypatch):
    # Pieces and units a thousandth of their size.
    monkeypatch.setattr("components.review_example_gen.stages._BYTES_PER_UNIT", 128 << 10)
    monkeypatch.setattr("preprocessing.readers.pieces._PLAIN_BYTES", 8 << 10)
    reviews = 4000
    inputs = files(
        tmp_path / "in",
        (line(0, n) for n in range(reviews)),
        (line(1, n) for n in range(reviews, 2 * reviews)),
    )
    written = shards(read_examples(inputs, tmp_path))
    assert len(written) > 2
    for labels in written:
        assert 0.3 < share(labels) < 0.7
        # Also while it is read: training begins with the first of each file.
        assert 0.2 < share(labels[: len(labels) // 2]) < 0.8


def write_shards(folder, *contents):
    """A train split with these labels in its files."""
    examples = standard_artifacts.Examples()
    examples.uri = str(folder / "examples")
    examples.split_names = artifact_utils.encode_split_names(["train"])
    split = folder / "examples" / "Split-train"
    split.mkdir(parents=True)
    for number, labels in enumerate(contents):
        path = split / f"data_tfrecord-{number:05d}-of-{len(contents):05d}.gz"
        with tf.io.TFRecordWriter(str(path), "GZIP") as writer:
            for label in labels:
                feature = {
                    "text": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"some text"])),
                    "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
                }
                example = tf.train.Example(features=tf.train.Features(feature=feature))
                writer.write(example.SerializeToString())
    return examples


def test_a_sample_of_one_sided_files_is_fair(tmp_path):
    examples = write_shards(tmp_path, [0] * 6000, [1] * 2000, [], [0] * 3000, [1] * 1000)
    found = counts(look_at(examples, tmp_path, 1500)["train"])
    assert 1200 < sum(found.values()) < 1800
    assert 0.2 < found[1] / sum(found.values()) < 0.3


@pytest.mark.parametrize("max_examples", [1, 2, 100])
def test_a_class_that_the_sample_misses_is_not_missing(tmp_path, max_examples):
    examples = write_shards(tmp_path, [0] * 3000 + [1], [0] * 3000)
    assert counts(look_at(examples, tmp_path, max_examples)["train"]) == {0: 6000, 1: 1}
