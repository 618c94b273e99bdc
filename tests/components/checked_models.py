"""Small models with the three signatures of a pushed model, some of them broken on purpose."""

import numpy as np
import tensorflow as tf

from components.evaluator import files
from components.evaluator.files import CANDIDATE, WHOLE, Results
from components.evaluator.metrics import Counts
from components.evaluator.settings import Evaluation

GOOD, BAD = ("great", "good", "love"), ("awful", "bad", "hate")


class Words(tf.Module):
    """A model whose probability depends on the words of a vocabulary in the text."""

    def __init__(self, folder, words=(*GOOD, *BAD), *, fails=False, halves_text=False):
        super().__init__()
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / "words.txt"
        file.write_text("\n".join(words))
        self._file = tf.saved_model.Asset(str(file))
        initializer = tf.lookup.TextFileInitializer(
            self._file,
            tf.string,
            tf.lookup.TextFileIndex.WHOLE_LINE,
            tf.int64,
            tf.lookup.TextFileIndex.LINE_NUMBER,
        )
        self._table = tf.lookup.StaticHashTable(initializer, len(words))
        self._weights = tf.Variable([3.0] * len(GOOD) + [-3.0] * len(BAD) + [0.0])
        self._fails, self._halves_text = fails, halves_text

    def _predict(self, texts):
        if self._fails:
            # The assertion fails in the first call, not while the model is saved.
            with tf.control_dependencies([tf.debugging.Assert(False, ["the table is empty"])]):
                texts = tf.identity(texts)
        words = tf.strings.split(texts)
        ids = tf.ragged.map_flat_values(self._table.lookup, words)
        rows = tf.ragged.map_flat_values(lambda i: tf.gather(self._weights, i), ids)
        probability = tf.sigmoid(tf.reduce_sum(rows, axis=1))
        return {"probability": probability, "label": tf.cast(probability > 0.5, tf.int64)}

    def _texts(self, examples):
        spec = {"text": tf.io.FixedLenFeature([], tf.string)}
        return tf.io.parse_example(examples, spec)["text"]

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="examples")])
    def serving_default(self, examples):
        return self._predict(self._texts(examples))

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="texts")])
    def predict_text(self, texts):
        answer = self._predict(texts)
        if self._halves_text:
            answer["probability"] /= 2
        return answer

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="examples")])
    def transform_features(self, examples):
        return {"words": tf.strings.split(self._texts(examples)).to_tensor()}


def save(model, folder, names=("serving_default", "predict_text", "transform_features")):
    signatures = {name: getattr(model, name) for name in names}
    tf.saved_model.save(model, str(folder), signatures=signatures)


def write_evaluation(folder, accuracy, count):
    """Write metrics as an Evaluator does."""
    right = np.arange(count) < round(accuracy * count)
    counts = Counts.of(np.ones(count, np.int64), np.where(right, 0.9, 0.1))
    files.write(str(folder), Results(Evaluation(), {WHOLE: {CANDIDATE: counts}}))
