"""The predictor that all uses of a pushed model share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from core import exit_codes
from core.errors import UserError
from serving.versions import versions


class NoModelError(UserError):
    """A serving folder without a pushed model. The message names the folder and the remedy."""

    exit_code = exit_codes.BAD_INPUT

    def __init__(self, serving: str):
        super().__init__(
            f"no model has been pushed to {serving} yet; `amazon-reviews run` trains and pushes one"
        )


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
        raise NoModelError(serving)
    return newest


class Predictor:
    """A pushed model, loaded once.

    Attributes:
      predict_text: the `PredictText` of the model.
    """

    def __init__(self, model_folder: str):
        """Load the model; see `serving.predict_text.load_predict_text`."""
        from serving.predict_text import load_predict_text

        self.predict_text = load_predict_text(model_folder)

    def predict(self, texts: Sequence[bytes]) -> list[Prediction]:
        """Return the sentiment of each text, in UTF-8."""
        outputs = self.predict_text(texts)
        columns = (outputs[name].tolist() for name in Prediction._fields)
        return [Prediction(*row) for row in zip(*columns, strict=True)]
