"""Training from TFRecords to a SavedModel, on one device and mirrored over two."""

import json
import math
import subprocess
import sys

import apache_beam as beam
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_transform.beam as tft_beam
import tf_keras
from tensorflow_transform.tf_metadata import dataset_metadata, schema_utils

from preprocessing import features
from preprocessing.transform import preprocessing_fn
from trainer_module import dataset
from trainer_module.models import ngram_linear

pytestmark = pytest.mark.slow

TRANSFORM = {"ngrams": 2, "ngram_buckets": 4096}
TRAINING = {
    "model": "ngram_linear",
    "strategy": "one_device",
    "devices": None,
    "epochs": 3,
    "batch_size_per_replica": 16,
    "learning_rate": 0.03,
    "shuffle_buffer": 1000,
    "seed": 1,
}
RUN = """
import json, sys
from absl import logging
from trainer_module.settings import TrainingJob
from trainer_module.training import train
logging.set_verbosity(logging.INFO)
train(TrainingJob(**json.loads(sys.argv[1])))
"""


def reviews(count):
    """Words alone say little here; `not` in front of them turns the label."""
    for i in range(count):
        word, label = [("good", 1), ("bad", 0)][i % 2]
        negated = i % 3 == 0
        yield f"{'not' if negated else 'very'} {word} number{i % 50}", label ^ negated


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """Folder with `train.gz`, `eval.gz` (transformed TFRecords) and the transform graph."""
    folder = tmp_path_factory.mktemp("prepared")
    spec = {
        features.TEXT: tf.io.FixedLenFeature([1], tf.string),
        features.LABEL: tf.io.FixedLenFeature([1], tf.int64),
    }
    metadata = dataset_metadata.DatasetMetadata(schema_utils.schema_from_feature_spec(spec))
    rows = [{"text": [text.encode()], "label": [label]} for text, label in reviews(300)]
    config = {**TRANSFORM, "features": ngram_linear.FEATURES}
    with beam.Pipeline(runner="DirectRunner"), tft_beam.Context(temp_dir=str(folder / "tmp")):
        (data, _), transform_fn = (rows, metadata) | tft_beam.AnalyzeAndTransformDataset(
            lambda inputs: preprocessing_fn(inputs, config)
        )
        transform_fn | tft_beam.WriteTransformFn(str(folder / "graph"))
    for name, part in {"train": data[:250], "eval": data[250:]}.items():
        with tf.io.TFRecordWriter(str(folder / f"{name}.gz"), "GZIP") as writer:
            for row in part:
                writer.write(_example(row).SerializeToString())
    return folder


def _example(row):
    def ints(values):
        return tf.train.Feature(int64_list=tf.train.Int64List(value=np.ravel(values)))

    named = {features.NGRAMS: ints(row["ngrams"]), features.LABEL: ints(row["label"])}
    return tf.train.Example(features=tf.train.Features(feature=named))


def train(prepared, folder, **training):
    """Trains in a process of its own; returns its log."""
    job = {
        "train_files": [str(prepared / "train.gz")],
        "eval_files": [str(prepared / "eval.gz")],
        "transform_graph": str(prepared / "graph"),
        "serving_model_dir": str(folder / "model"),
        "model_run_dir": str(folder / "run"),
        "training": {**TRAINING, **training},
        "transform": TRANSFORM,
    }
    done = subprocess.run(
        [sys.executable, "-c", RUN, json.dumps(job)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize(("strategy", "devices"), [("one_device", None), ("mirrored", 2)])
def test_a_training_ends_with_a_model_that_learned_negation(prepared, tmp_path, strategy, devices):
    log = train(prepared, tmp_path, strategy=strategy, devices=devices, batch_size_per_replica=8)
    replicas = devices or 1
    steps = math.ceil(250 / (8 * replicas))
    assert f"250 examples, {replicas} replicas x 8, {steps} steps an epoch" in log
    assert f"{steps}/{steps}" in log
    assert list((tmp_path / "run" / "logs" / "train").iterdir()), "no TensorBoard logs"
    model = tf.saved_model.load(str(tmp_path / "model"))
    texts = ["very good", "not good", "very bad", "not bad"]
    answer = model.signatures["predict_text"](texts=tf.constant(texts))
    assert answer["label"].numpy().tolist() == [1, 0, 0, 1]


def test_no_training_example_is_an_error_that_names_the_files(prepared, tmp_path):
    tf.io.TFRecordWriter(str(tmp_path / "train.gz"), "GZIP").close()
    (tmp_path / "eval.gz").symlink_to(prepared / "eval.gz")
    (tmp_path / "graph").symlink_to(prepared / "graph")
    with pytest.raises(AssertionError, match=r"no training example in .*train.gz"):
        train(tmp_path, tmp_path)


def test_an_epoch_is_every_example_once(prepared):
    spec = dataset.feature_spec(ngram_linear.FEATURES, TRANSFORM)
    files = [str(prepared / "train.gz")]
    assert dataset.count_examples(files) == 250
    for shuffle in (0, 100):
        batches = list(dataset.make_dataset(files, spec, 64, shuffle_buffer=shuffle, seed=3))
        assert [len(labels) for _, labels in batches] == [64, 64, 64, 58]
    assert isinstance(batches[0][0][features.NGRAMS], tf.RaggedTensor)
    assert batches[0][1].dtype == tf.float32


def test_the_scale_is_larger_for_ngrams_that_tell_the_classes_apart():
    model = ngram_linear.build({}, {"ngram_buckets": 4})
    ids = tf.ragged.constant([[0, 2], [0, 2], [1, 2], [1, 2]], dtype=tf.int64)
    labels = tf.constant([[1.0], [1.0], [0.0], [0.0]])
    ngram_linear.adapt(model, tf.data.Dataset.from_tensors(({features.NGRAMS: ids}, labels)))
    scale = model.get_layer("bag").scale.numpy()
    assert scale[0] == pytest.approx(scale[1])
    assert scale[0] > 2 * scale[2]
    occurrences = np.array([2, 2, 4, 0])
    assert (scale * occurrences).sum() / occurrences.sum() == pytest.approx(1.0)


def test_a_bag_sums_weights_and_an_empty_review_is_the_bias():
    model = ngram_linear.build({}, {"ngram_buckets": 3})
    bag = model.get_layer("bag")
    bag.table.assign([1.0, 10.0, 100.0])
    bag.bias.assign([0.5])
    ids = tf.ragged.constant([[0, 1, 1], [], [2]], dtype=tf.int64)
    assert model({features.NGRAMS: ids}).numpy().ravel().tolist() == [21.5, 0.5, 100.5]
    assert isinstance(model, tf_keras.Model)
