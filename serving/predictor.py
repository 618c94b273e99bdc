"""The predictor that all uses of a pushed model share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from core import exit_codes
from core.errors import UserError
from serving.signing.model import verified
from serving.versions import versions

LABELS = ("negative", "positive")


class NoModelError(UserError):
    """A serving folder without a pushed model. The message names the folder and the remedy."""

    exit_code = exit_codes.BAD_INPUT


class Prediction(NamedTuple):
    """The sentiment of one review.

    Attributes:
      probability: of the review being positive, in [0, 1].
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

    def __init__(self, model_folder: str, public_key: bytes | None = None):
        """Load the model from a local folder or a URL.

        Args:
          model_folder: the SavedModel.
          public_key: PEM of the key that must have signed it; None: any model is loaded.

        Raises:
          SignatureError: see `serving.signing.model.verified`.
        """
        import tensorflow as tf

        with verified(model_folder, public_key) as folder:
            self._model = tf.saved_model.load(folder)
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
