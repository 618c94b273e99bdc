"""A small model with the signature of a pushed model."""

import tensorflow as tf


class Good(tf.Module):
    """A model that predicts 0.9 for texts that contain "good", and 0.1 for others."""

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
    """Write the model to a local folder or a URL that TensorFlow supports."""
    model = Good(probability)
    tf.saved_model.save(model, str(folder), signatures={"predict_text": model.predict_text})
