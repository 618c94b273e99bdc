"""The results of a serving check: the answers of a candidate, thresholds and the evaluation.

- `serving_default`, `predict_text`, and `predict_text` for single texts return the same probability
  for the same test review, within TOLERANCE.
- So does the evaluation, within EVALUATION_TOLERANCE, for the test reviews whose predictions it has
  stored, which are some of them.
- The test split has as many reviews as the evaluation has counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from components.examples import Sample
from components.serving_check.candidate import EXAMPLE, SIGNATURES, TEXT, Answers
from components.serving_check.settings import Thresholds
from preprocessing.features import CLASSES, THRESHOLD

TOLERANCE = 1e-3
"""Greatest difference of two probabilities by rounding, which is that of half precision."""
EVALUATION_TOLERANCE = 1e-2
"""Greatest difference between the evaluation and the check, which is on the CPU. A GPU multiplies
matrices with ten bits (TF32)."""
_MEASUREMENTS = (
    ("load_seconds", "s", None, ""),
    ("memory_mb", "MiB", "max_memory_mb", "the server used"),
    ("p99_ms", "ms", "max_p99_ms", "the p99 latency of single requests is"),
    ("reviews_per_second", "reviews/s", None, ""),
)
"""Name, unit, threshold in the settings, and the beginning of the cause."""


class Evaluated(NamedTuple):
    """What is compared of an evaluation.

    Attributes:
      reviews: the number of reviews of the test split.
      predictions: index of an Example of the sample -> its probability. It is empty if the Examples
        have changed since the evaluation.
    """

    reviews: int
    predictions: Mapping[int, float]


class Result(NamedTuple):
    """One line of `check.json`.

    Attributes:
      name: the name of the measurement.
      value: its value, or a text.
      threshold: the greatest or least value that passes; None if there is none.
      unit: the unit of `value` and `threshold`; empty for a number without a unit.
      cause: the reason in one line if the model did not pass, else empty.
    """

    name: str
    value: float | str
    threshold: float | None = None
    unit: str = ""
    cause: str = ""


def check(
    answers: Answers,
    failure: str,
    thresholds: Thresholds,
    sample: Sample,
    evaluated: Evaluated,
    golden: Sequence[Sequence[str]],
) -> dict[str, Any]:
    """Return the content of `check.json`.

    Its structure is flat: `passed`; `cause`, one line, empty if the model passed; `results`, a list
    of objects with the attributes of `Result` and `passed` instead of `cause`; `golden_mistakes`, a
    list of objects with `text`, `label` and the `probability` that the review is positive.

    Args:
      answers: the answers of the candidate.
      failure: the reason for which some are missing; empty if none is.
      thresholds: the thresholds.
      sample: the Examples that were sent.
      evaluated: the evaluation of the model.
      golden: the label and the text of each golden sentence.
    """
    mistakes = [
        {"text": text, "label": label, "probability": round(probability, 4)}
        for (label, text), probability in zip(golden, answers.golden, strict=False)
        if CLASSES[probability > THRESHOLD] != label
    ]
    results = [Result("process", failure or "finished", cause=failure)]
    if answers.signatures:  # The model was loaded.
        missing = [name for name in SIGNATURES if name not in answers.signatures]
        cause = f"the model has no signature {' and no '.join(missing)}" if missing else ""
        results.append(Result("signatures", ", ".join(answers.signatures), cause=cause))
    results += _measurements(answers, thresholds)
    results += _agreement(answers, sample, evaluated.predictions)
    total, counted = sample.total, evaluated.reviews
    if total != counted:  # Examples were deleted after the evaluation.
        cause = f"the test split has {total:,} reviews, the evaluation counted {counted:,}"
        results.append(Result("examples", total, counted, cause=cause))
    if answers.golden:
        results += _golden([label for label, _ in golden], mistakes, thresholds.min_golden)
    causes = [result.cause for result in results if result.cause]
    more = f" (and {len(causes) - 1} more)" if len(causes) > 1 else ""
    return {
        "passed": not causes,
        "cause": " ".join(f"{causes[0]}{more}".split()) if causes else "",
        "results": [_row(**result._asdict()) for result in results],
        "golden_mistakes": mistakes,
    }


def _row(cause: str, **values: Any) -> dict[str, Any]:
    return {**values, "passed": not cause}


def _measurements(answers: Answers, thresholds: Thresholds) -> Iterator[Result]:
    for name, unit, key, subject in _MEASUREMENTS:
        value = getattr(answers, name)
        limit = getattr(thresholds, key) if key else None
        if value is None:
            continue
        cause = ""
        if limit is not None and value > limit:
            shown = f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
            cause = f"{subject} {shown} {unit}, serving_check.{key} allows {limit:g}"
        yield Result(name, value, limit, unit, cause)


def _agreement(
    answers: Answers, sample: Sample, predictions: Mapping[int, float]
) -> Iterator[Result]:
    """Yield whether all kinds of requests, and the evaluation, have the same probabilities."""
    if len(answers.by_example) != len(sample.examples):
        return
    # `by_single` is shorter: only the first texts were sent in requests of their own.
    others = {EXAMPLE: answers.by_example, f"{TEXT} for a single text": answers.by_single}
    ways = [
        (f"{TEXT} returned", one, f"{way} returned", other)
        for way, found in others.items()
        for one, other in zip(answers.by_text, found, strict=False)
    ]
    yield _compared("largest_difference", TOLERANCE, ways)
    evaluated = [
        (f"{EXAMPLE} returned", answers.by_example[number], "the evaluation has", value)
        for number, value in predictions.items()
    ]
    if evaluated:
        yield _compared("evaluation_difference", EVALUATION_TOLERANCE, evaluated)
    else:
        cause = "the evaluation has stored no predictions of these test reviews"
        yield Result("evaluation_difference", "no predictions", cause=cause)


def _compared(
    name: str, tolerance: float, pairs: Iterable[tuple[str, float, str, float]]
) -> Result:
    """Return the first difference above the tolerance, or else the greatest difference."""
    largest = 0.0
    for way, one, other_way, other in pairs:
        difference = abs(one - other)
        # A comparison with NaN is false, so a prediction that is not a number does not pass.
        if not difference <= tolerance:
            cause = (
                f"{way} the probability {one:.4f} for a test review, and {other_way} {other:.4f} "
                "for the same review"
            )
            return Result(name, difference, tolerance, cause=cause)
        largest = max(largest, difference)
    return Result(name, largest, tolerance)


def _golden(
    labels: Sequence[str], mistakes: Sequence[Mapping[str, Any]], least: float
) -> Iterator[Result]:
    """Yield whether enough golden sentences of each class are right."""
    for label in CLASSES:
        count = labels.count(label)
        right = count - sum(mistake["label"] == label for mistake in mistakes)
        if not count:
            continue
        cause = (
            f"{right} of {count} {label} golden sentences are right, serving_check.min_golden "
            f"requires {least:g}; check the model, or set serving_check.golden to sentences of its "
            "data"
        )
        # No model can miss 0.
        is_passed = right / count >= least
        yield Result(
            f"golden_{label}", right / count, least or None, cause="" if is_passed else cause
        )
