"""Raw files to transformed features, compared with a slow and obvious reference."""

import bz2
import csv
import json
import re
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tensorflow as tf
import tensorflow_data_validation as tfdv
import tensorflow_transform as tft
from tensorflow_metadata.proto.v0 import statistics_pb2
from tfx.components.util import examples_utils
from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor
from tfx.proto import transform_pb2
from tfx.types import standard_artifacts
from tfx.utils import proto_utils

import preprocessing
from components.statistics_gen import Executor as StatisticsExecutor
from components.transform.component import Executor as TransformExecutor
from pipeline.config import PipelineConfig
from platforms.beam import beam_args
from preprocessing.fast.ngrams import ngram_ids
from tests.components.example_gen import SPLITS, label_of, read_files, records, text_of
from trainer_module.inputs.stored import LABELS, NGRAMS, read_class_counts

pytestmark = pytest.mark.slow

SETTINGS = {
    "ngrams": 2,
    "ngram_buckets": 1000,
    "openings": [1, 2],
    "vocabulary_size": 30,
    "max_tokens": 6,
}
WORDS = ["Good", "bad", "phone,", "never", "again!", "Don't", "über", "it's", "(cheap)", "café"]
ROWS = [
    (n % 2, f"Title {n}", " ".join(WORDS[(n * k) % len(WORDS)] for k in range(1, 3 + n % 40)))
    for n in range(600)
]
CONTEXT = BaseBeamExecutor.Context(beam_pipeline_args=[], tmp_dir="")


def write(folder: Path, kind: str) -> Path:
    folder.mkdir(parents=True)
    lines = "".join(f"__label__{label + 1} {title}: {body}\n" for label, title, body in ROWS)
    if kind == "csv":
        with (folder / "a.csv").open("w", newline="") as file:
            table = [(label * 4 + 1, title, body) for label, title, body in ROWS]
            csv.writer(file).writerows([("rating", "title", "text"), *table])
    elif kind == "parquet":
        labels, titles, bodies = map(list, zip(*ROWS, strict=True))
        table = pa.table({"label": labels, "title": titles, "content": bodies})
        pq.write_table(table, folder / "a.parquet", row_group_size=100)
    else:
        compress = {"plain": bytes, "bz2": bz2.compress}[kind]
        (folder / "a.ft.txt").write_bytes(compress(lines.encode()))
    return folder


def read_examples(inputs: Path, out: Path, **options) -> standard_artifacts.Examples:
    return read_files(out, inputs, **options).examples


def schema(folder: Path) -> standard_artifacts.Schema:
    artifact = standard_artifacts.Schema()
    artifact.uri = str(folder / "schema")
    shutil.copytree(Path(preprocessing.__file__).parent / "schema", artifact.uri)
    return artifact


def transform(examples, folder: Path, features: list[str], context=CONTEXT):
    graph, transformed = standard_artifacts.TransformGraph(), standard_artifacts.Examples()
    graph.uri, transformed.uri = str(folder / "graph"), str(folder / "transformed")
    config = transform_pb2.SplitsConfig(analyze=["train"], transform=["train", "eval"])
    TransformExecutor(context).Do(
        {"examples": [examples], "schema": [schema(folder)]},
        {"transform_graph": [graph], "transformed_examples": [transformed]},
        {
            "preprocessing_fn": "preprocessing.transform.preprocessing_fn",
            "splits_config": proto_utils.proto_to_json(config),
            "custom_config": json.dumps({**SETTINGS, "features": features}),
        },
    )
    return tft.TFTransformOutput(graph.uri), transformed


# ---- the reference


def words_of(text: bytes) -> list[str]:
    return re.sub(r"[!-&(-/:-@\[-`{-~]+", r" \g<0> ", text.decode().lower()).split()


def ngram_ids_of(texts: list[bytes]) -> list[list[int]]:
    """Return the ids by NumPy, which other tests compare with those of TensorFlow."""
    names = ("ngrams", "ngram_buckets", "openings")
    found = ngram_ids(texts, *(SETTINGS[name] for name in names))
    ends = np.cumsum(found.row_lengths)
    return [ids.tolist() for ids in np.split(found.ids, ends[:-1])]


def bucket(words: list[str]) -> bytes:
    limits = {20: b"1-19", 50: b"20-49", 100: b"50-99", 200: b"100-199"}
    return next(name for limit, name in limits.items() if len(words) < limit)


@pytest.fixture(scope="module")
def by_format(tmp_path_factory):
    folder = tmp_path_factory.mktemp("formats")
    kinds = ("plain", "bz2", "csv", "parquet")
    return {
        kind: read_files(folder / kind, write(folder / kind / "in", kind), max_rejected_fraction=0)
        for kind in kinds
    }


def test_every_format_gives_the_examples_that_protobuf_would_write(by_format):
    wanted = Counter((label, f"{title}: {body}".encode()) for label, title, body in ROWS)
    plain = by_format["plain"]
    for kind, read in by_format.items():
        assert sum(map(read.content, SPLITS), Counter()) == wanted, kind
        assert examples_utils.get_file_format(read.examples) == "tfrecords_gzip"
        for split in SPLITS:
            assert Counter(records(read.examples, split)) == Counter(records(plain.examples, split))
            assert {frozenset(e.features.feature) for e in read.splits[split]} == {
                frozenset({"label", "text"})
            }


def test_ngrams_words_and_counts_are_those_of_the_examples(by_format, tmp_path):
    read = by_format["bz2"]
    output, transformed = transform(read.examples, tmp_path, ["ngrams", "tokens"])
    frequency = Counter()
    for example in read.splits["train"]:
        frequency.update(words_of(text_of(example))[: SETTINGS["max_tokens"]])
    # The vocabulary is that of the train split.
    vocabulary = [word.decode() for word in output.vocabulary_by_name("words")]
    assert len(vocabulary) == min(len(frequency), SETTINGS["vocabulary_size"])
    counts = [frequency[word] for word in vocabulary]
    assert counts == sorted(frequency.values(), reverse=True)[: len(counts)]
    number = {word: index + 2 for index, word in enumerate(vocabulary)}
    for split in ("train", "eval"):
        examples = read.splits[split]
        wanted = Counter()
        for example, ids in zip(examples, ngram_ids_of(list(map(text_of, examples))), strict=True):
            words = words_of(text_of(example))
            tokens = tuple(number.get(w, 1) for w in words[: SETTINGS["max_tokens"]])
            wanted[label_of(example), bucket(words), tuple(sorted(ids)), tokens] += 1
        found = Counter()
        for example in map(tf.train.Example.FromString, records(transformed, split)):
            feature = example.features.feature
            assert set(feature) == {"label", "length_bucket", "ngrams", "tokens"}
            found[
                label_of(example),
                feature["length_bucket"].bytes_list.value[0],
                tuple(sorted(feature["ngrams"].int64_list.value)),
                tuple(feature["tokens"].int64_list.value),
            ] += 1
        assert found == wanted and found
    assert not Path(transformed.uri, "unpublished").exists()
    stored = json.loads(Path(transformed.uri, "example_counts.json").read_text())
    assert stored == {
        str(file.relative_to(transformed.uri)): sum(
            1 for _ in tf.data.TFRecordDataset(str(file), "GZIP")
        )
        for file in Path(transformed.uri).glob("Split-*/*")
    }
    # The n-grams of the train split are counted by class.
    counts = np.zeros([2, SETTINGS["ngram_buckets"]], np.int64)
    train = read.splits["train"]
    for example, ids in zip(train, ngram_ids_of(list(map(text_of, train))), strict=True):
        np.add.at(counts[label_of(example)], ids, 1)
    pattern = f"{transformed.uri}/Split-{{}}/*"
    np.testing.assert_array_equal(
        read_class_counts([pattern.format("train")], NGRAMS, SETTINGS["ngram_buckets"]), counts
    )
    assert read_class_counts([pattern.format("train")], LABELS).sum() == len(train)
    assert read_class_counts([pattern.format("eval")], LABELS) is None
    # Serving calls this layer.
    layer = output.transform_features_layer()
    tokens = layer({"text": tf.constant([["Good phone zzz"]])})["tokens"]
    assert tokens.values.numpy().tolist() == [number["good"], number["phone"], 1]


@pytest.mark.exhaustive
@pytest.mark.xdist_group("flink")
def test_the_vocabulary_and_the_words_on_flink(tmp_path, flink_jars):
    flink = {"jars": str(flink_jars), "parallelism": 2}
    config = {"paths": {"root": str(tmp_path)}, "beam": {"runner": "flink", "flink": flink}}
    arguments = beam_args(PipelineConfig.model_validate(config))
    on_flink = BaseBeamExecutor.Context(beam_pipeline_args=arguments, tmp_dir="")
    examples = read_examples(write(tmp_path / "in", "plain"), tmp_path)
    features = ["tokens", "ngrams"]
    expected, wanted = transform(examples, tmp_path / "direct", features)
    found, transformed = transform(examples, tmp_path / "flink", features, on_flink)
    vocabulary = found.vocabulary_by_name("words")
    assert vocabulary == expected.vocabulary_by_name("words")
    assert len(vocabulary) == SETTINGS["vocabulary_size"]
    for split in ("train", "eval"):
        assert features_of(transformed, split) == features_of(wanted, split)
    counts = [
        read_class_counts([f"{e.uri}/Split-train/*"], NGRAMS, 1000) for e in (wanted, transformed)
    ]
    np.testing.assert_array_equal(*counts)


def features_of(examples, split):
    """Return the Examples of a split, without the order of their features."""
    parsed = (tf.train.Example.FromString(record) for record in records(examples, split))
    return Counter(example.SerializeToString(deterministic=True) for example in parsed)


@pytest.mark.parametrize("max_examples", [None, 120])
def test_statistics_are_those_of_tfx_or_of_a_sample(by_format, tmp_path, max_examples):
    statistics = standard_artifacts.ExampleStatistics()
    statistics.uri = str(tmp_path / "statistics")
    StatisticsExecutor(CONTEXT).Do(
        {"examples": [by_format["plain"].examples], "schema": [schema(tmp_path)]},
        {"statistics": [statistics]},
        {
            "stats_options_json": tfdv.StatsOptions().to_json(),
            "exclude_splits": "null",
            "sample_rate_by_split": "null",
            "max_examples": max_examples,
        },
    )
    assert statistics.split_names == '["train", "eval", "test"]'
    for split in ("train", "eval", "test"):
        (file,) = Path(statistics.uri, f"Split-{split}").iterdir()
        found = statistics_pb2.DatasetFeatureStatisticsList.FromString(file.read_bytes())
        (dataset,) = found.datasets
        examples = by_format["plain"].splits[split]
        total, ones = len(examples), sum(map(label_of, examples))
        features = {feature.path.step[0]: feature for feature in dataset.features}
        assert set(features) == {"text", "label"}
        label = features["label"].string_stats
        assert label.unique == 2 and label.common_stats.num_non_missing == dataset.num_examples
        ranked = {bucket.label: bucket.sample_count for bucket in label.rank_histogram.buckets}
        if (max_examples or total) < total:
            assert split == "train"
            assert 80 < dataset.num_examples < 160
            assert sum(ranked.values()) == dataset.num_examples
            assert ranked["1"] / dataset.num_examples == pytest.approx(ones / total, abs=0.15)
        else:
            assert dataset.num_examples == total
            assert ranked == {"0": total - ones, "1": ones}
