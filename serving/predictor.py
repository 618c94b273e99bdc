"""The predictor that all uses of a pushed model share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from core import exit_codes
from core.errors import UserError
from serving.versions import versions

LABELS = ("negative", "positive")


class NoModelError(UserError):
    """A serving folder without a pushed model. The message names the folder and the remedy."""

    exit_code = exit_codes.BAD_INPUT


class Prediction(NamedTuple):
    """The sentiment of one review.

    Attributes:
      probability: probability that the review is positive, in [0, 1].
      label: 0 negative, 1 positive.
    """

    probability: float
    label: int


def latest_model(serving: str) -> str:
    """Return the folder of the newest complete model.

    Args:
      serving: the serving folder or its URL.

    Raises:
      NoModelError: the serving folder has no model.
      OSError: the serving folder cannot be listed.
    """
    newest = next(versions(serving), None)
    if newest is None:
        raise NoModelError(
            f"no model has been pushed to {serving} yet; `amazon-reviews run` trains and pushes one"
        )
    return newest


class Predictor:
    """A pushed model, loaded once."""

    def __init__(self, model_folder: str):
        import tensorflow as tf

        self._model = tf.saved_model.load(model_folder)
        self._predict = self._model.signatures["predict_text"]

    def predict(self, texts: Sequence[str | bytes]) -> list[Prediction]:
        """Return the sentiment of each text; bytes are UTF-8."""
        import tensorflow as tf

        outputs = self._predict(texts=tf.constant(list(texts), tf.string))
        return [
            Prediction(float(probability), int(label))
            for probability, label in zip(
                outputs["probability"].numpy(), outputs["label"].numpy(), strict=True
            )
        ]
