"""Small models with the signatures of a pushed model."""

import tensorflow as tf

from preprocessing import normalise
from preprocessing.labels import Labels, write_labels

BUCKETS = 1000


class Good(tf.Module):
    """A model that predicts `probability` for texts that contain "good", else 1 - `probability`."""

    def __init__(self, probability=0.9):
        super().__init__()
        self.probability = tf.Variable(probability)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def predict_text(self, texts):
        good = tf.strings.regex_full_match(texts, "(?s).*good.*")
        return {
            "probability": tf.where(good, self.probability, 1.0 - self.probability),
            "label": tf.cast(good, tf.int64),
        }


def push(folder, probability=0.9):
    """Write the model to a local folder or a URL that TensorFlow supports."""
    model = Good(probability)
    tf.saved_model.save(model, str(folder), signatures={"predict_text": model.predict_text})


class Classes(tf.Module):
    """A model of several classes, which predicts class N for texts that contain the word cN."""

    def __init__(self, names):
        super().__init__()
        self.names = list(names)
        self.weight = tf.Variable(9.0)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def predict_text(self, texts):
        words = [rf"(?s).*\bc{n}\b.*" for n in range(len(self.names))]
        hits = [tf.strings.regex_full_match(texts, word) for word in words]
        points = 1 + self.weight * tf.stack([tf.cast(hit, tf.float32) for hit in hits], axis=1)
        label = tf.argmax(points, axis=1)
        return {
            "probabilities": points / tf.reduce_sum(points, axis=1, keepdims=True),
            "label": label,
            "class": tf.gather(tf.constant(self.names), label),
        }


TOPICS = Labels(("billing, refunds", '50% "off"\n\tnow', "<b>Größe</b>", "مرحبا", "true"))
"""Classes with difficult names."""


def push_classes(folder, labels=TOPICS):
    """Write the model `Classes` with its file of classes; return the folder."""
    model = Classes(labels.names)
    tf.saved_model.save(model, str(folder), signatures={"predict_text": model.predict_text})
    write_labels(f"{folder}/assets", labels)
    return folder


class Ngrams(tf.Module):
    """A model whose probability is the fraction of even n-gram ids.

    With another hash, `predict_text` and `predict_ngrams` contradict each other. Without openings
    it has the two settings of earlier versions, and `characters` of None is an earlier version too.
    """

    def __init__(self, other_hash=0, openings=(2, 3), characters=None):
        super().__init__()
        settings = [2, BUCKETS, *openings]
        self.ngram_settings = tf.Variable(settings, dtype=tf.int64, trainable=False)
        if characters is not None:
            self.character_ngrams = tf.Variable(characters, dtype=tf.int64, trainable=False)
        self.other_hash, self.openings, self.characters = other_hash, openings, characters or ()

    def _answer(self, rows):
        even = tf.reduce_mean(tf.cast(rows % 2 == 0, tf.float32), axis=1)
        probability = tf.where(tf.math.is_nan(even), 0.0, even)
        return {"probability": probability, "label": tf.cast(probability > 0.5, tf.int64)}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def predict_text(self, texts):
        words = normalise.words(texts)
        rows = normalise.ngram_ids(words, 2, BUCKETS, self.openings, self.characters)
        return self._answer(rows.with_values(rows.flat_values + self.other_hash))

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int64)] * 2)
    def predict_ngrams(self, ngrams, row_lengths):
        return self._answer(tf.RaggedTensor.from_row_lengths(ngrams, row_lengths))


def save_ngrams(model, folder):
    """Write a model of n-grams; return the folder."""
    names = ("predict_text", "predict_ngrams")
    signatures = {name: getattr(model, name) for name in names}
    tf.saved_model.save(model, str(folder), signatures=signatures)
    return str(folder)
