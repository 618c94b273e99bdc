"""A small model with the signature that a pushed one is asked through."""

import tensorflow as tf


class Good(tf.Module):
    """Finds a text positive that has "good" in it; the probability is 0.9 or 0.1."""

    def __init__(self, probability=0.9):
        super().__init__()
        self.probability = tf.Variable(probability)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def predict_text(self, texts):
        good = tf.strings.regex_full_match(texts, ".*good.*")
        return {
            "probability": tf.where(good, self.probability, 1.0 - self.probability),
            "label": tf.cast(good, tf.int64),
        }


def push(folder, probability=0.9):
    """Writes the model to a local folder or a URL that TensorFlow knows."""
    model = Good(probability)
    tf.saved_model.save(model, str(folder), signatures={"predict_text": model.predict_text})
