"""Explain the most confident mistakes of a model."""

from __future__ import annotations

from typing import NamedTuple

from tfx.utils import path_utils

from components.evaluator.files import read_mistakes
from serving.explain import Part, parts, variants
from serving.predict_text import load_predict_text


class Mistake(NamedTuple):
    """A review that the model gets wrong.

    Attributes:
      text, label, probability: see `components.evaluator.files.MISTAKES_FILE`.
      parts: the parts of the text, with the effects of its first words.
    """

    text: str
    label: int
    probability: float
    parts: list[Part]


def explain(evaluation: str, model: str) -> list[Mistake]:
    """Explain the mistakes that the Evaluator stored.

    Args:
      evaluation: URI of the evaluation.
      model: URI of the model.
    """
    predict_text = load_predict_text(path_utils.serving_model_path(model))
    mistakes = []
    for stored in read_mistakes(evaluation):
        probabilities = predict_text(variants(stored["text"]))["probability"]
        effects = parts(stored["text"], probabilities.tolist())
        mistakes.append(Mistake(**stored, parts=effects))
    return mistakes
