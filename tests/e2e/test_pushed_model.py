"""The pushed SavedModel: its signatures, and that it is the model that was evaluated."""

import glob
import pickle
import uuid
from collections import Counter

import apache_beam as beam
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_model_analysis as tfma
from tensorflow_model_analysis.proto import config_pb2
from tfx_bsl.tfxio.tf_example_record import TFExampleBeamRecord

from components.evaluator.files import eval_config
from core.local_beam import make_pipeline
from pipeline.config import load_config
from preprocessing import features, normalise
from preprocessing.settings import Transform

pytestmark = [pytest.mark.slow, pytest.mark.both_stacks, pytest.mark.xdist_group("finished")]


@pytest.fixture(scope="module")
def pushed(first_run):
    workspace, *_ = first_run
    return tf.saved_model.load(str(workspace.pushed()[0]))


@pytest.fixture(scope="module")
def test_examples(first_run):
    workspace, *_ = first_run
    return _examples(workspace, "ReviewExampleGen", "test")


def _examples(workspace, component, split):
    """Return the serialized Examples that a component wrote."""
    uris = [a.uri for a in workspace.store().get_artifacts_by_type("Examples")]
    [uri] = [uri for uri in uris if component in uri]
    files = glob.glob(f"{uri}/Split-{split}/*")
    return [record.numpy() for record in tf.data.TFRecordDataset(files, "GZIP")]


def _texts(examples):
    return [
        tf.train.Example.FromString(e).features.feature[features.TEXT].bytes_list.value[0]
        for e in examples
    ]


def test_raw_strings_and_examples_get_the_same_answer(pushed, test_examples):
    by_text = pushed.signatures["predict_text"](texts=tf.constant(_texts(test_examples)))
    by_example = pushed.signatures["serving_default"](examples=tf.constant(test_examples))
    np.testing.assert_array_equal(by_text["probability"], by_example["probability"])
    np.testing.assert_array_equal(by_text["label"], by_example["label"])
    assert by_text["probability"].dtype == tf.float32
    assert by_text["label"].dtype == tf.int64
    assert by_text["probability"].shape == (len(test_examples),)


def test_examples_need_no_label_to_be_predicted(pushed):
    text = tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"Great: loved it"]))
    example = tf.train.Example(features=tf.train.Features(feature={features.TEXT: text}))
    answer = pushed.signatures["serving_default"](
        examples=tf.constant([example.SerializeToString()])
    )
    assert answer["label"].numpy() in ([0], [1])


def test_transform_features_returns_the_features_of_the_training(finished, pushed):
    workspace, _ = finished
    written = Counter()
    for example in _examples(workspace, "Transform", "eval"):
        feature = tf.train.Example.FromString(example).features.feature
        [bucket] = feature[features.LENGTH_BUCKET].bytes_list.value
        written[bucket, tuple(feature[features.NGRAMS].int64_list.value)] += 1
    raw = _examples(workspace, "ReviewExampleGen", "eval")
    answer = pushed.signatures["transform_features"](examples=tf.constant(raw))
    assert set(answer) == {features.LENGTH_BUCKET, features.NGRAMS}
    buckets, ngrams = (answer[name].numpy() for name in (features.LENGTH_BUCKET, features.NGRAMS))
    rows = zip(buckets.ravel(), ngrams, strict=True)
    answered = Counter((bucket, tuple(row[row >= 0])) for bucket, row in rows)
    assert answered == written
    assert set(buckets.ravel()) <= {bucket.encode() for bucket in features.LENGTH_BUCKETS}
    # The default is uni- and bigrams: each word, and each pair of neighbouring words, of the
    # review and of each opening.
    words = normalise.words(tf.constant(_texts(raw))).row_lengths().numpy()
    runs = [words, *(np.minimum(words, length) for length in Transform().openings)]
    wanted = sum(2 * run - 1 for run in runs)
    np.testing.assert_array_equal((ngrams >= 0).sum(axis=1), wanted)


def test_predict_text_equals_the_evaluation_example_by_example(
    finished, pushed, test_examples, tmp_path
):
    """The predictions of the Evaluator, by TFMA's extractors, equal those for raw strings."""
    evaluated = _evaluated(finished[0], test_examples, tmp_path)
    assert len(evaluated) == len(test_examples)
    answers = pushed.signatures["predict_text"](texts=tf.constant(_texts(evaluated)))
    np.testing.assert_allclose(list(evaluated.values()), answers["probability"], atol=1e-6)


def _evaluated(workspace, examples, folder):
    """Return serialized Example -> probability, as the Evaluator extracts it."""
    config = config_pb2.EvalConfig()
    settings = load_config(str(workspace.config), environ={}).evaluation
    config.CopyFrom(eval_config(settings, has_baseline=False))
    config = tfma.utils.update_eval_config_with_defaults(
        config, has_baseline=False, rubber_stamp=True
    )
    model = tfma.default_eval_shared_model(
        eval_saved_model_path=str(workspace.artifact_uri("Model") / "Format-Serving"),
        eval_config=config,
    )
    source = TFExampleBeamRecord(
        physical_format="inmem",
        raw_record_column_name=tfma.ARROW_INPUT_COLUMN,
        telemetry_descriptors=["test"],
    )
    with make_pipeline() as pipeline:
        extracts = (
            pipeline | beam.Create(examples) | source.BeamSource() | tfma.BatchedInputsToExtracts()
        )
        for extractor in tfma.default_extractors(eval_shared_model=model, eval_config=config):
            extracts |= extractor.stage_name >> extractor.ptransform
        extracts | beam.Map(_keep, str(folder))
    kept = [pickle.loads(file.read_bytes()) for file in folder.iterdir()]
    return dict(kept)


def _keep(extract, folder):
    example = bytes(np.asarray(extract["input"]).ravel()[0])
    probability = float(extract["predictions"]["probability"].ravel()[0])
    with open(f"{folder}/{uuid.uuid4().hex}", "wb") as file:
        pickle.dump((example, probability), file)
