"""Models and Examples of which the metrics are known to differ, for tests of the Evaluator."""

import numpy as np
import tensorflow as tf
import tf_keras
from tensorflow_transform.tf_metadata import schema_utils
from tfx.components.util import examples_utils
from tfx.proto import example_gen_pb2
from tfx.types import standard_artifacts

from components.transform.component import write_graph
from preprocessing import features, normalise
from preprocessing.settings import Transform
from preprocessing.transform import preprocessing_fn
from tests.examples import example, write
from trainer_module import export, models

SETTINGS = Transform(ngrams=2, ngram_buckets=64, openings=[2, 3])
WORDS = ["good", "bad", "phone", "never", "again", "don't", "über", "(cheap)", "İyi", "a"]


def texts(count):
    """Texts of 0 to 259 words."""
    return [
        " ".join(WORDS[(n * k + k // 7) % len(WORDS)] for k in range((n * 37) % 260))
        for n in range(count)
    ]


def write_examples(folder, count):
    """Write Examples in three files."""
    examples = standard_artifacts.Examples()
    examples.uri, examples.split_names = str(folder), '["test"]'
    examples_utils.set_payload_format(examples, example_gen_pb2.FORMAT_TF_EXAMPLE)
    examples_utils.set_file_format(examples, "tfrecords_gzip")
    split = folder / "Split-test"
    split.mkdir(parents=True)
    written = [example(text=text, label=n % 3 % 2) for n, text in enumerate(texts(count))]
    for number in range(3):
        write(split / f"data_tfrecord-{number:05d}-of-00003.gz", written[number::3])
    return examples


def write_ngram_model(folder, seed):
    """Export a model with random weights, as the Trainer does; return the artifact."""
    spec = {
        "text": tf.io.FixedLenFeature([1], tf.string),
        "label": tf.io.FixedLenFeature([1], tf.int64),
    }
    write_graph(
        lambda inputs: preprocessing_fn(
            inputs, {**SETTINGS.model_dump(), "features": [features.NGRAMS]}
        ),
        schema_utils.schema_from_feature_spec(spec),
        {name: tf.TensorSpec([None, 1], value.dtype) for name, value in spec.items()},
        str(folder / "graph"),
    )
    module = models.load("ngram_linear")
    model = module.build(module.Hyperparameters(), SETTINGS)
    weights = np.random.default_rng(seed)
    model.set_weights([weights.normal(0, 0.3, value.shape) for value in model.get_weights()])
    tf_keras.backend.clear_session()
    export.save(model, str(folder / "graph"), str(folder / "Format-Serving"), SETTINGS)
    return _artifact(folder)


class OtherModel(tf.Module):
    """A model without n-grams, and with a feature of its own for slices."""

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="examples")])
    def serving_default(self, examples):
        lengths = tf.cast(self._words(examples), tf.float32)
        return {"probability": tf.expand_dims(tf.sigmoid(tf.sin(lengths)), 1), "words": lengths}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="examples")])
    def transform_features(self, examples):
        return {"is_long": tf.expand_dims(tf.where(self._words(examples) >= 100, "yes", "no"), 1)}

    def _words(self, examples):
        text = tf.io.parse_example(examples, {"text": tf.io.FixedLenFeature([], tf.string)})["text"]
        return normalise.words(text).row_lengths()


def write_other_model(folder):
    """Export an `OtherModel`; return the artifact."""
    model = OtherModel()
    signatures = {name: getattr(model, name) for name in ("serving_default", "transform_features")}
    tf.saved_model.save(model, str(folder / "Format-Serving"), signatures=signatures)
    return _artifact(folder)


def _artifact(folder):
    model = standard_artifacts.Model()
    model.uri = str(folder)
    return model
