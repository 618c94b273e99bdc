"""Small models with the signatures of a pushed model."""

import functools
import shutil
import tempfile

import tensorflow as tf

from preprocessing import features
from preprocessing.labels import write_labels
from tests.serving.models import TOPICS, Classes, Good

SIGNATURES = ("serving_default", "predict_text", "transform_features")


class _WithExamples(tf.Module):
    """The signatures for Examples, beside those for texts."""

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="examples")])
    def serving_default(self, examples):
        return self.predict_text(self._texts(examples))

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="examples")])
    def transform_features(self, examples):
        return {"words": tf.strings.split(self._texts(examples)).to_tensor("-")}

    def _texts(self, examples):
        spec = {features.TEXT: tf.io.FixedLenFeature([], tf.string)}
        return tf.io.parse_example(examples, spec)[features.TEXT]


class Small(Good, _WithExamples):
    """The model `Good` with all signatures of a pushed model."""


class SmallClasses(Classes, _WithExamples):
    """The model `Classes` with all signatures of a pushed model."""


@functools.cache
def _saved(probability, names):
    """Return a folder with the model, which exists until the end of the tests."""
    folder = tempfile.TemporaryDirectory()
    model = Small(probability)
    tf.saved_model.save(model, folder.name, {name: getattr(model, name) for name in names})
    return folder


def push(serving, version, probability=0.9, names=SIGNATURES):
    """Write a version with these signatures to the folder `serving` atomically."""
    scratch = serving.parent / f"scratch-{version}"
    shutil.copytree(_saved(probability, names).name, scratch)
    serving.mkdir(exist_ok=True)
    scratch.rename(serving / str(version))


def push_classes(serving, version, labels=TOPICS):
    """Write a version with these classes to the folder `serving` atomically."""
    scratch = serving.parent / f"scratch-{version}"
    model = SmallClasses(labels.names)
    tf.saved_model.save(model, str(scratch), {name: getattr(model, name) for name in SIGNATURES})
    write_labels(str(scratch / "assets"), labels)
    serving.mkdir(exist_ok=True)
    scratch.rename(serving / str(version))


def push_broken(serving, version):
    """Write a version whose graph is damaged."""
    scratch = serving.parent / f"scratch-{version}"
    shutil.copytree(next(serving.iterdir()), scratch)
    (scratch / "saved_model.pb").write_bytes(b"\x00damaged")
    scratch.rename(serving / str(version))
