"""One predictor behind everything that asks a pushed model."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

LABELS = ("negative", "positive")


class NoModelError(LookupError):
    """Nothing has been pushed yet; the message says where was looked and what to do."""


class Prediction(NamedTuple):
    """probability: that the review is positive; label: 0 negative, 1 positive."""

    probability: float
    label: int


def latest_model(serving: str) -> str:
    """The folder of the last pushed model: the highest version number with a SavedModel in it.

    Raises:
      NoModelError: there is none.
    """
    versions = os.listdir(serving) if os.path.isdir(serving) else []
    pushed = [
        version
        for version in versions
        if version.isdecimal() and os.path.exists(os.path.join(serving, version, "saved_model.pb"))
    ]
    if not pushed:
        raise NoModelError(f"no model has been pushed to {serving} yet; `amazon-reviews run` does")
    return os.path.join(serving, max(pushed, key=int))


class Predictor:
    """A pushed model, loaded once."""

    def __init__(self, model_folder: str):
        import tensorflow as tf

        self._model = tf.saved_model.load(model_folder)
        self._predict = self._model.signatures["predict_text"]

    def predict(self, texts: Sequence[str]) -> list[Prediction]:
        """The sentiment of each text."""
        import tensorflow as tf

        outputs = self._predict(texts=tf.constant(list(texts), tf.string))
        return [
            Prediction(float(probability), int(label))
            for probability, label in zip(
                outputs["probability"].numpy(), outputs["label"].numpy(), strict=True
            )
        ]
