"""The evaluation in a report: metrics, slices, undecided reviews, and the explained mistakes."""

from __future__ import annotations

import re
from typing import NamedTuple

from tfx.utils import path_utils

from components.evaluator.files import CANDIDATE, WHOLE, Results, read_mistakes
from components.evaluator.metrics import METRICS, Counts, Metric
from preprocessing.features import THRESHOLD, UNDECIDED
from serving.explain import Part, parts, variants
from serving.predictor import Predictor


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


def figures() -> list[Metric]:
    """Return the metrics of a report."""
    return [metric for metric in METRICS if metric.title]


def slices(results: Results) -> list[tuple[str, Counts]]:
    """Return the name of each slice, and the counts of the candidate there."""
    found = [(*of_slice, models[CANDIDATE]) for of_slice, models in results.slices.items()]
    found.sort(key=lambda each: (each[0], _first_number(each[1])))
    return [(f"{name} {value}", counts) for name, value, counts in found if (name, value) != WHOLE]


def undecided(counts: Counts) -> tuple[int, float] | None:
    """Return number and accuracy of the reviews whose probability is near the threshold; None if
    there are none."""
    # Rounded, because 1 - 0.7 is more than 0.3.
    lowest = round(1 - UNDECIDED, 9)
    near = [each for each in counts.tenths() if lowest <= each.lower < UNDECIDED]
    examples = sum(each.negative + each.positive for each in near)
    right = sum(each.positive if each.lower >= THRESHOLD else each.negative for each in near)
    return (examples, right / examples) if examples else None


def explain(evaluation: str, model: str) -> list[Mistake]:
    """Explain the mistakes that the Evaluator stored.

    Args:
      evaluation: URI of the evaluation.
      model: URI of the model.
    """
    predictor = Predictor(path_utils.serving_model_path(model))
    mistakes = []
    for stored in read_mistakes(evaluation):
        predictions = predictor.predict(variants(stored["text"]))
        effects = parts(stored["text"], [each.probability for each in predictions])
        mistakes.append(Mistake(**stored, parts=effects))
    return mistakes


def _first_number(name: str) -> int:
    found = re.search(r"\d+", name)
    return int(found[0]) if found else 0
