"""Raw files to transformed features, in all formats, compared with a slow and obvious reference."""

from __future__ import annotations

import bz2
import csv
import gzip
import json
import re
import shutil
from collections import Counter
from itertools import pairwise
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
from tfx.proto import example_gen_pb2, transform_pb2
from tfx.types import standard_artifacts
from tfx.utils import proto_utils

import preprocessing
from components.artifacts import RejectedLines
from components.review_example_gen.executor import Executor as ReviewExampleGenExecutor
from components.statistics_gen import Executor as StatisticsExecutor
from components.transform.component import Executor as TransformExecutor
from core.errors import InputError
from pipeline.config import PipelineConfig
from platforms.beam import beam_args
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
    elif kind == "jsonl":
        rows = [{"overall": label * 4 + 1, "summary": t, "reviewText": b} for label, t, b in ROWS]
        (folder / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif kind == "parquet":
        labels, titles, bodies = map(list, zip(*ROWS, strict=True))
        table = pa.table({"label": labels, "title": titles, "content": bodies})
        pq.write_table(table, folder / "a.parquet", row_group_size=100)
    else:
        compress = {"plain": bytes, "bz2": bz2.compress, "gz": gzip.compress}[kind]
        (folder / "a.ft.txt").write_bytes(compress(lines.encode()))
    return folder


def read_examples(inputs: Path, out: Path, **options) -> standard_artifacts.Examples:
    examples, rejected = standard_artifacts.Examples(), RejectedLines()
    examples.uri, rejected.uri = str(out / "examples"), str(out / "rejected")
    split = example_gen_pb2.Input.Split(name="all", pattern="*")
    options = {"read": {}, "max_examples": {}, "max_rejected_fraction": 0.01, **options}
    ReviewExampleGenExecutor(CONTEXT).Do(
        {},
        {"examples": [examples], "rejected": [rejected]},
        {
            "input_base": str(inputs),
            "input_config": proto_utils.proto_to_json(example_gen_pb2.Input(splits=[split])),
            "options": json.dumps(options),
        },
    )
    return examples


def records(examples: standard_artifacts.Examples, split: str) -> list[bytes]:
    assert examples_utils.get_file_format(examples) == "tfrecords_gzip"
    files = sorted(str(path) for path in Path(examples.uri, f"Split-{split}").iterdir())
    return [record.numpy() for record in tf.data.TFRecordDataset(files, "GZIP")]


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


def words_of(text: str) -> list[str]:
    return re.sub(r"[!-&(-/:-@\[-`{-~]+", r" \g<0> ", text.lower()).split()


def ngram_ids(words: list[str]) -> list[int]:
    """The ids of words and pairs, and once more, with other numbers, those of the openings."""
    hashes = [int(tf.strings.to_hash_bucket_fast(word, 2**62)) for word in words]
    runs = [hashes]
    for number, size in enumerate(SETTINGS["openings"], 1):
        runs.append([value + number * 0x2545F4914F6CDD1D % 2**63 for value in hashes[:size]])
    values = [
        value % 2**64
        for run in runs
        for value in (*run, *(first * 116049371 + second for first, second in pairwise(run)))
    ]
    # 2^64 is no multiple of 1000, so it matters that TensorFlow's int64 has a sign.
    return [(value - 2**64 * (value >= 2**63)) % SETTINGS["ngram_buckets"] for value in values]


def bucket(words: list[str]) -> bytes:
    limits = {20: b"1-19", 50: b"20-49", 100: b"50-99", 200: b"100-199"}
    return next(name for limit, name in limits.items() if len(words) < limit)


def text_of(example: bytes) -> str:
    parsed = tf.train.Example.FromString(example).features.feature
    return parsed["text"].bytes_list.value[0].decode()


@pytest.fixture(scope="module")
def by_format(tmp_path_factory):
    folder = tmp_path_factory.mktemp("formats")
    kinds = ("plain", "bz2", "gz", "csv", "jsonl", "parquet")
    return {kind: read_examples(write(folder / kind / "in", kind), folder / kind) for kind in kinds}


def test_every_format_gives_the_examples_that_protobuf_would_write(by_format):
    wanted = Counter((label, f"{title}: {body}".encode()) for label, title, body in ROWS)
    splits = {}
    for kind, examples in by_format.items():
        found = Counter()
        for split in ("train", "eval", "test"):
            for record in records(examples, split):
                feature = tf.train.Example.FromString(record).features.feature
                assert set(feature) == {"label", "text"}
                label, text = feature["label"].int64_list, feature["text"].bytes_list
                found[label.value[0], text.value[0]] += 1
        assert found == wanted, kind
        splits[kind] = {s: Counter(records(examples, s)) for s in ("train", "eval", "test")}
    assert all(found == splits["plain"] for found in splits.values())


def test_ngrams_equal_those_of_the_reference(by_format, tmp_path):
    _, transformed = transform(by_format["bz2"], tmp_path, ["ngrams"])
    for split in ("train", "eval"):
        wanted = Counter()
        for example in records(by_format["bz2"], split):
            words = words_of(text_of(example))
            label = tf.train.Example.FromString(example).features.feature["label"]
            row = (label.int64_list.value[0], bucket(words), tuple(sorted(ngram_ids(words))))
            wanted[row] += 1
        found = Counter()
        for example in records(transformed, split):
            feature = tf.train.Example.FromString(example).features.feature
            assert set(feature) == {"label", "length_bucket", "ngrams"}
            row = (
                feature["label"].int64_list.value[0],
                feature["length_bucket"].bytes_list.value[0],
                tuple(sorted(feature["ngrams"].int64_list.value)),
            )
            found[row] += 1
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
    for example in records(by_format["bz2"], "train"):
        label = tf.train.Example.FromString(example).features.feature["label"].int64_list.value[0]
        np.add.at(counts[label], ngram_ids(words_of(text_of(example))), 1)
    pattern = f"{transformed.uri}/Split-{{}}/*"
    np.testing.assert_array_equal(
        read_class_counts([pattern.format("train")], NGRAMS, SETTINGS["ngram_buckets"]), counts
    )
    assert read_class_counts([pattern.format("eval")], LABELS) is None


def test_words_equal_those_of_the_reference_and_the_vocabulary_is_of_train(by_format, tmp_path):
    output, transformed = transform(by_format["gz"], tmp_path, ["tokens"])
    train = [f"{transformed.uri}/Split-train/*"]
    assert read_class_counts(train, LABELS).sum() == len(list(records(by_format["gz"], "train")))
    assert read_class_counts(train, NGRAMS, SETTINGS["ngram_buckets"]) is None
    frequency = Counter()
    for example in records(by_format["gz"], "train"):
        frequency.update(words_of(text_of(example))[: SETTINGS["max_tokens"]])
    vocabulary = [word.decode() for word in output.vocabulary_by_name("words")]
    assert len(vocabulary) == min(len(frequency), SETTINGS["vocabulary_size"])
    counts = [frequency[word] for word in vocabulary]
    assert counts == sorted(frequency.values(), reverse=True)[: len(counts)]
    number = {word: index + 2 for index, word in enumerate(vocabulary)}
    wanted = Counter(
        tuple(number.get(w, 1) for w in words_of(text_of(e))[: SETTINGS["max_tokens"]])
        for e in records(by_format["gz"], "eval")
    )
    parsed = [tf.train.Example.FromString(e).features.feature for e in records(transformed, "eval")]
    assert Counter(tuple(f["tokens"].int64_list.value) for f in parsed) == wanted
    # Serving calls this layer.
    layer = output.transform_features_layer()
    tokens = layer({"text": tf.constant([["Good phone zzz"]])})["tokens"]
    assert tokens.values.numpy().tolist() == [number["good"], number["phone"], 1]


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
        {"examples": [by_format["plain"]], "schema": [schema(tmp_path)]},
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
        total = len(records(by_format["plain"], split))
        features = {feature.path.step[0]: feature for feature in dataset.features}
        assert set(features) == {"text", "label"}
        label = features["label"].string_stats
        assert label.unique == 2 and label.common_stats.num_non_missing == dataset.num_examples
        ranked = {bucket.label: bucket.sample_count for bucket in label.rank_histogram.buckets}
        ones = sum(
            tf.train.Example.FromString(e).features.feature["label"].int64_list.value[0]
            for e in records(by_format["plain"], split)
        )
        if (max_examples or total) < total:
            assert split == "train"
            assert 80 < dataset.num_examples < 160
            assert sum(ranked.values()) == dataset.num_examples
            assert ranked["1"] / dataset.num_examples == pytest.approx(ones / total, abs=0.15)
        else:
            assert dataset.num_examples == total
            assert ranked == {"0": total - ones, "1": ones}


# ---- damage


def damaged(folder: Path) -> tuple[Path, int]:
    """Write a bz2 file of 20 blocks with one damaged block; return its folder and its size."""
    folder.mkdir()
    lines = b"".join(b"__label__%d review %d: %r\n" % (n % 2 + 1, n, n**9) for n in range(45_000))
    archive = bytearray(bz2.compress(lines, 1))
    middle = len(archive) // 2
    archive[middle : middle + 40] = bytes(byte ^ 0xFF for byte in archive[middle : middle + 40])
    (folder / "a.bz2").write_bytes(archive)
    return folder, len(archive)


def test_reviews_outside_a_damaged_block_are_read_and_its_position_is_reported(tmp_path):
    inputs, size = damaged(tmp_path / "in")
    examples = read_examples(inputs, tmp_path, max_rejected_fraction=0.2)
    found = sum(len(records(examples, split)) for split in ("train", "eval", "test"))
    assert 45_000 * 0.85 < found < 45_000
    (record,) = (tmp_path / "rejected" / "lines-00000-of-00001.jsonl").read_text().splitlines()
    record = json.loads(record)
    assert record["reason"] == "corrupt_archive" and record["file"].endswith("a.bz2")
    at = int(
        re.search(r"at byte ([\d,]+) of the compressed file", record["detail"])[1].replace(",", "")
    )
    assert size * 0.45 < at < size * 0.6
    counts = json.loads((tmp_path / "rejected" / "summary.json").read_text())
    assert 0 < counts["lost_bytes"] < size * 0.15
    assert counts["rejected/corrupt_archive"] == 1


def test_too_much_damage_is_an_input_error(tmp_path):
    inputs, size = damaged(tmp_path / "in")
    with pytest.raises(InputError) as error:
        read_examples(inputs, tmp_path, max_rejected_fraction=0.01)
    assert f"of {size:,} bytes" in str(error.value)
    assert re.search(r"a\.bz2:\d+ corrupt_archive \(damaged at byte [\d,]+", str(error.value))
