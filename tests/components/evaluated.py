"""Models and Examples of which the metrics are known to differ, for tests of the Evaluator."""

import tensorflow as tf
from tfx.components.util import examples_utils
from tfx.proto import example_gen_pb2
from tfx.types import standard_artifacts

from preprocessing import normalise
from preprocessing.labels import LABELS_FILE, SENTIMENT, write_labels
from tests.examples import example, write
from tests.serving.models import Ngrams

WORDS = ["good", "bad", "phone", "never", "again", "don't", "über", "(cheap)", "İyi", "a"]
EXAMPLES = [tf.TensorSpec([None], tf.string, name="examples")]


def texts(count):
    """Texts of 0 to 259 words."""
    return [
        " ".join(WORDS[(n * k + k // 7) % len(WORDS)] for k in range((n * 37) % 260))
        for n in range(count)
    ]


def write_examples(folder, count, labels=SENTIMENT, make_texts=texts):
    """Write Examples in three files. The last class of more than two has no Example."""
    examples = standard_artifacts.Examples()
    examples.uri, examples.split_names = str(folder), '["test"]'
    examples_utils.set_payload_format(examples, example_gen_pb2.FORMAT_TF_EXAMPLE)
    examples_utils.set_file_format(examples, "tfrecords_gzip")
    split = folder / "Split-test"
    split.mkdir(parents=True)
    write_labels(str(folder), labels)
    used = 2 if labels.is_binary else labels.number - 1
    written = [example(text=text, label=n % 3 % used) for n, text in enumerate(make_texts(count))]
    for number in range(3):
        write(split / f"data_tfrecord-{number:05d}-of-00003.gz", written[number::3])
    return examples


def texts_of(examples):
    return tf.io.parse_example(examples, {"text": tf.io.FixedLenFeature([], tf.string)})["text"]


class NgramModel(Ngrams):
    """A model that reads n-grams, and has the signature for Examples."""

    NAMES = ("serving_default", "predict_text", "predict_ngrams")

    @tf.function(input_signature=EXAMPLES)
    def serving_default(self, examples):
        return self.predict_text(texts_of(examples))


class OtherModel(tf.Module):
    """A model without n-grams, and with a feature of its own for slices."""

    NAMES = ("serving_default", "transform_features")

    @tf.function(input_signature=EXAMPLES)
    def serving_default(self, examples):
        lengths = tf.cast(self._words(examples), tf.float32)
        return {"probability": tf.expand_dims(tf.sigmoid(tf.sin(lengths)), 1), "words": lengths}

    @tf.function(input_signature=EXAMPLES)
    def transform_features(self, examples):
        return {"is_long": tf.expand_dims(tf.where(self._words(examples) >= 100, "yes", "no"), 1)}

    def _words(self, examples):
        return normalise.words(texts_of(examples)).row_lengths()


class ClassModel(tf.Module):
    """A model of several classes, whose answer is the number of words modulo `answers`."""

    NAMES = ("serving_default",)

    def __init__(self, classes, answers):
        super().__init__()
        self.classes, self.answers = classes, answers

    @tf.function(input_signature=EXAMPLES)
    def serving_default(self, examples):
        lengths = normalise.words(texts_of(examples)).row_lengths()
        wanted = tf.one_hot(lengths % self.answers, self.classes)
        return {"probabilities": tf.nn.softmax(wanted * tf.cast(lengths[:, None], tf.float32))}


def write_model(model, folder, labels=None):
    """Export a model, with its classes if there are any; return the artifact."""
    if labels is not None:
        folder.mkdir(parents=True)
        write_labels(str(folder), labels)
        model.labels = tf.saved_model.Asset(str(folder / LABELS_FILE))
    signatures = {name: getattr(model, name) for name in model.NAMES}
    tf.saved_model.save(model, str(folder / "Format-Serving"), signatures=signatures)
    artifact = standard_artifacts.Model()
    artifact.uri = str(folder)
    return artifact
