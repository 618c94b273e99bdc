"""One predictor behind everything that asks a pushed model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from core import exit_codes
from core.errors import UserError
from serving.versions import versions

LABELS = ("negative", "positive")


class NoModelError(UserError):
    """There is no pushed model. The message names the folder and what to do."""

    exit_code = exit_codes.BAD_INPUT


class Prediction(NamedTuple):
    """probability: that the review is positive; label: 0 negative, 1 positive."""

    probability: float
    label: int


def latest_model(serving: str) -> str:
    """The folder of the last pushed model, of a serving folder or its URL.

    Raises:
      NoModelError: there is none.
      OSError: the folder cannot be listed.
    """
    newest = next(versions(serving), None)
    if newest is None:
        raise NoModelError(f"no model has been pushed to {serving} yet; `amazon-reviews run` does")
    return newest


class Predictor:
    """A pushed model, loaded once."""

    def __init__(self, model_folder: str):
        import tensorflow as tf

        self._model = tf.saved_model.load(model_folder)
        self._predict = self._model.signatures["predict_text"]

    def predict(self, texts: Sequence[str | bytes]) -> list[Prediction]:
        """The sentiment of each text; bytes are UTF-8."""
        import tensorflow as tf

        outputs = self._predict(texts=tf.constant(list(texts), tf.string))
        return [
            Prediction(float(probability), int(label))
            for probability, label in zip(
                outputs["probability"].numpy(), outputs["label"].numpy(), strict=True
            )
        ]
