"""Transform, compared with a slow and obvious reference."""

import json
import re
import shutil
from collections import Counter
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_transform as tft
from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor
from tfx.proto import transform_pb2
from tfx.types import standard_artifacts
from tfx.utils import proto_utils

import preprocessing
from components.transform import TransformExecutor
from examples import digest
from examples.counts import LABELS, NGRAMS, read_class_counts
from pipeline.config import PipelineConfig
from platforms.beam import beam_args
from preprocessing import normalise
from preprocessing.fast.ngrams import ngram_ids, split_words
from tests.components.example_gen import label_of, read_files, records, text_of, write
from tests.examples import example as make_example
from tests.examples import write as write_records

pytestmark = pytest.mark.slow

SETTINGS = {
    "ngrams": 2,
    "ngram_buckets": 1000,
    "openings": [1, 2],
    "character_ngrams": [3],
    "vocabulary_size": 30,
    "max_tokens": 6,
}
WORDS = ["Good", "bad", "phone,", "never", "again!", "Don't", "über", "it's", "(cheap)", "café"]
ROWS = [
    (n % 2, f"Title {n}", " ".join(WORDS[(n * k) % len(WORDS)] for k in range(1, 3 + n % 40)))
    for n in range(600)
]
CONTEXT = BaseBeamExecutor.Context(beam_pipeline_args=[], tmp_dir="")


def schema(folder: Path) -> standard_artifacts.Schema:
    artifact = standard_artifacts.Schema()
    artifact.uri = str(folder / "schema")
    shutil.copytree(Path(preprocessing.__file__).parent / "schema", artifact.uri)
    return artifact


def transform(examples, folder: Path, features: list[str], context=CONTEXT, **properties):
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
            **properties,
        },
    )
    return tft.TFTransformOutput(graph.uri), transformed


# ---- the reference


def words_of(text: bytes) -> list[str]:
    return re.sub(r"[!-&(-/:-@\[-`{-~]+", r" \g<0> ", text.decode().lower()).split()


def ngram_ids_of(texts: list[bytes]) -> list[list[int]]:
    """Return the ids by compiled code, which other tests compare with those of TensorFlow."""
    names = ("ngrams", "ngram_buckets", "openings", "character_ngrams")
    found = ngram_ids(split_words(texts), *(SETTINGS[name] for name in names))
    ends = np.cumsum(found.row_lengths)
    return [ids.tolist() for ids in np.split(found.ids, ends[:-1])]


def bucket(words: list[str]) -> bytes:
    limits = {20: b"1-19", 50: b"20-49", 100: b"50-99", 200: b"100-199"}
    return next(name for limit, name in limits.items() if len(words) < limit)


@pytest.fixture(scope="module")
def read(tmp_path_factory):
    folder = tmp_path_factory.mktemp("read")
    lines = [f"__label__{label + 1} {title}: {body}" for label, title, body in ROWS]
    return read_files(folder, write(folder / "in", "a.ft.txt", lines))


def test_ngrams_words_and_counts_are_those_of_the_examples(
    read, tmp_path, monkeypatch, counted, caplog
):
    digested = Mock()
    monkeypatch.setattr(digest, "write_digest", digested)
    output, transformed = transform(read.examples, tmp_path, ["ngrams", "tokens"], code="c0de")
    assert "in another way" not in caplog.text
    # The digest of the output depends on the settings and on the code.
    assert {'"vocabulary_size": 30' in each for each in digested.call_args[0][2]} == {True, False}
    assert "c0de" in digested.call_args[0][2]
    examples = sum(len(read.splits[split]) for split in ("train", "eval"))
    assert counted("texts transformed") == (examples, examples)
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
    counted = json.loads(Path(transformed.uri, "example_counts.json").read_text())
    assert counted == {
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
        read_class_counts([pattern.format("train")], NGRAMS, 2, SETTINGS["ngram_buckets"]), counts
    )
    assert read_class_counts([pattern.format("train")], LABELS, 2).sum() == len(train)
    assert read_class_counts([pattern.format("eval")], LABELS, 2) is None
    # Serving calls this layer.
    layer = output.transform_features_layer()
    tokens = layer({"text": tf.constant([["Good phone zzz"]])})["tokens"]
    assert tokens.values.numpy().tolist() == [number["good"], number["phone"], 1]


@pytest.mark.exhaustive
@pytest.mark.xdist_group("flink")
def test_the_vocabulary_and_the_words_on_flink(read, tmp_path, flink_jars):
    flink = {"jars": str(flink_jars), "parallelism": 2}
    config = {"paths": {"root": str(tmp_path)}, "beam": {"runner": "flink", "flink": flink}}
    arguments = beam_args(PipelineConfig.model_validate(config))
    on_flink = BaseBeamExecutor.Context(beam_pipeline_args=arguments, tmp_dir="")
    runs = [
        transform(read.examples, tmp_path / f"{number}", ["tokens"], context)
        for number, context in enumerate((CONTEXT, on_flink))
    ]
    [expected, found] = [
        (
            output.vocabulary_by_name("words"),
            [sorted(map(tokens_of, records(examples, split))) for split in ("train", "eval")],
        )
        for output, examples in runs
    ]
    assert found == expected


def tokens_of(record):
    feature = tf.train.Example.FromString(record).features.feature
    return list(feature["tokens"].int64_list.value)


def _cut(words):
    return words[:, :20]


def _without_stop_words(words):
    return tf.ragged.boolean_mask(words, words != "never")


# The changes of words and buckets that someone makes in the graph alone, and the features that then
# differ from those of the compiled code.
@pytest.mark.parametrize(
    ("target", "change", "named"),
    [
        ("preprocessing.normalise.MULTIPLIER", 3, "ngrams"),
        ("preprocessing.features.LENGTH_BOUNDARIES", (5, 10, 20, 30), "length_bucket"),
        ("preprocessing.normalise.words", _cut, "length_bucket and ngrams"),
        ("preprocessing.normalise.words", _without_stop_words, "length_bucket and ngrams"),
    ],
)
def test_a_feature_that_only_the_graph_changes_is_that_of_the_graph(
    read, tmp_path, monkeypatch, caplog, target, change, named
):
    if callable(change):
        words = normalise.words
        monkeypatch.setattr(target, lambda texts: change(words(texts)))
    else:
        monkeypatch.setattr(target, change)
    output, transformed = transform(read.examples, tmp_path, ["ngrams"])
    assert f"preprocessing_fn computes {named} in another way" in caplog.text
    texts = [text_of(example) for example in read.splits["eval"]]
    labels = tf.zeros([len(texts), 1], tf.int64)
    by_graph = output.transform_features_layer()(
        {"text": tf.expand_dims(texts, 1), "label": labels}
    )
    ngrams = tf.RaggedTensor.from_sparse(by_graph["ngrams"]).to_list()
    buckets = by_graph["length_bucket"].numpy()[:, 0].tolist()
    found = Counter()
    for record in records(transformed, "eval"):
        feature = tf.train.Example.FromString(record).features.feature
        [bucket] = feature["length_bucket"].bytes_list.value
        found[bucket, tuple(feature["ngrams"].int64_list.value)] += 1
    assert found == Counter(zip(buckets, map(tuple, ngrams), strict=True))


def test_an_example_whose_label_is_of_no_class_is_an_error(read, tmp_path):
    """Also in a split that is not counted by class; `test_counts.py` has this test for train."""
    examples = standard_artifacts.Examples()
    examples.uri, examples.split_names = str(tmp_path / "examples"), read.examples.split_names
    shutil.copytree(read.examples.uri, examples.uri)
    file = min(Path(examples.uri, "Split-eval").iterdir())
    write_records(file, [make_example(text="Good", label=[label]) for label in (1, 2)])
    Path(examples.uri, "example_counts.json").unlink()  # it has those of the other file
    line = "an Example has the label 2, but the labels of the 2 classes are 0 to 1; run once"
    with pytest.raises(Exception, match=line):
        transform(examples, tmp_path, ["ngrams"])
