"""The results of a serving check: the answers of a candidate, thresholds and the evaluation.

- `serving_default`, `predict_text`, and `predict_text` for single texts return the same probability
  for the same test review, within TOLERANCE.
- So does the evaluation, within EVALUATION_TOLERANCE, for the test reviews whose predictions it has
  stored, which are some of them.
- The test split has as many reviews as the evaluation has counted.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from components.examples import Sample
from components.serving_check.candidate import EXAMPLE, SIGNATURES, TEXT, Answers
from components.serving_check.golden import Sentence
from components.serving_check.settings import Thresholds
from preprocessing.features import CLASSES
from trainer_module.export import THRESHOLD

TOLERANCE = 1e-3
"""Greatest difference of two probabilities by rounding, which is that of half precision."""
EVALUATION_TOLERANCE = 1e-2
"""Greatest difference between the evaluation and the check, which is on the CPU. A GPU multiplies
matrices with ten bits (TF32)."""


class Evaluated(NamedTuple):
    """What is compared of an evaluation.

    Attributes:
      reviews: the number of reviews of the test split.
      predictions: index of an Example of the sample -> its probability. It is empty if the Examples
        have changed since the evaluation.
    """

    reviews: int
    predictions: Mapping[int, float]


@dataclasses.dataclass(frozen=True)
class Result:
    """One line of `check.json`.

    Attributes:
      name: the name of the measurement.
      value: its value, or a text.
      threshold: the greatest or least value that passes; None if there is none.
      unit: the unit of `value` and `threshold`; empty for a number without a unit.
      passed: whether the model passed.
      cause: if it did not pass, the reason in one line. It is not a part of `check.json`.
    """

    name: str
    value: float | str
    threshold: float | None
    unit: str
    passed: bool
    cause: str = ""


def check(
    answers: Answers,
    failure: str,
    thresholds: Thresholds,
    sample: Sample,
    evaluated: Evaluated,
    golden: Sequence[Sentence],
) -> dict[str, Any]:
    """Return the content of `check.json`.

    Its structure is flat: `passed`; `cause`, one line, empty if the model passed; `results`, a list
    of objects with the attributes of `Result` except `cause`; `golden_mistakes`, a list of objects
    with `text`, `label` and the `probability` that the review is positive.

    Args:
      answers: the answers of the candidate.
      failure: the reason for which some are missing; empty if none is.
      thresholds: the thresholds.
      sample: the Examples that were sent.
      evaluated: the evaluation of the model.
      golden: the golden sentences.
    """
    mistakes = _mistakes(answers, golden)
    results = [
        Result("process", failure or "finished", None, "", not failure, failure),
        *_signatures(answers),
        *_measurements(answers, thresholds),
        *_agreement(answers, sample, evaluated.predictions),
        *_count(sample, evaluated.reviews),
        *_golden(answers, thresholds, golden),
    ]
    causes = [result.cause for result in results if not result.passed]
    more = f" (and {len(causes) - 1} more)" if len(causes) > 1 else ""
    return {
        "passed": not causes,
        "cause": " ".join(f"{causes[0]}{more}".split()) if causes else "",
        "results": [_without_cause(result) for result in results],
        "golden_mistakes": mistakes,
    }


def _without_cause(result: Result) -> dict[str, Any]:
    values = dataclasses.asdict(result)
    del values["cause"]
    return values


def _signatures(answers: Answers) -> Iterator[Result]:
    """Yield whether the model has all signatures, if it was loaded."""
    if answers.signatures:
        missing = [name for name in SIGNATURES if name not in answers.signatures]
        cause = f"the model has no signature {' and no '.join(missing)}"
        yield Result("signatures", ", ".join(answers.signatures), None, "", not missing, cause)


def _measurements(answers: Answers, thresholds: Thresholds) -> Iterator[Result]:
    """Yield the measurements that were made, of which two have a threshold."""
    measured = (
        ("load_seconds", answers.load_seconds, "s", None, ""),
        ("memory_mb", answers.memory_mb, "MiB", "max_memory_mb", "the server used"),
        ("p99_ms", answers.p99_ms, "ms", "max_p99_ms", "the p99 latency of single requests is"),
        ("reviews_per_second", answers.reviews_per_second, "reviews/s", None, ""),
    )
    for name, value, unit, key, subject in measured:
        if value is None:
            continue
        most = getattr(thresholds, key) if key else math.inf
        shown = f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
        cause = f"{subject} {shown} {unit}, serving_check.{key} allows {most:g}"
        yield Result(name, value, most if key else None, unit, value <= most, cause)


def _agreement(
    answers: Answers, sample: Sample, predictions: Mapping[int, float]
) -> Iterator[Result]:
    """Yield whether all kinds of requests, and the evaluation, have the same probabilities."""
    if len(answers.by_example) != len(sample.examples):
        return
    # `by_single` is shorter: only the first texts were sent in requests of their own.
    others = {EXAMPLE: answers.by_example, f"{TEXT} for a single text": answers.by_single}
    yield _compared(
        "largest_difference",
        TOLERANCE,
        (
            (f"{TEXT} returned", one, f"{way} returned", other)
            for way, found in others.items()
            for one, other in zip(answers.by_text, found, strict=False)
        ),
    )
    if not predictions:
        cause = "the evaluation has stored no predictions of these test reviews"
        yield Result("evaluation_difference", "no predictions", None, "", False, cause)
        return
    yield _compared(
        "evaluation_difference",
        EVALUATION_TOLERANCE,
        (
            (f"{EXAMPLE} returned", answers.by_example[number], "the evaluation has", value)
            for number, value in predictions.items()
        ),
    )


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
            return Result(name, difference, tolerance, "", False, cause)
        largest = max(largest, difference)
    return Result(name, largest, tolerance, "", True)


def _count(sample: Sample, counted: int) -> Iterator[Result]:
    """Yield a failure if Examples of the test split were deleted after the evaluation."""
    if sample.total != counted:
        cause = f"the test split has {sample.total:,} reviews, the evaluation counted {counted:,}"
        yield Result("examples", sample.total, counted, "", False, cause)


def _mistakes(answers: Answers, golden: Sequence[Sentence]) -> list[dict[str, Any]]:
    return [
        {"text": text, "label": label, "probability": round(probability, 4)}
        for (label, text), probability in zip(golden, answers.golden, strict=False)
        if CLASSES[probability > THRESHOLD] != label
    ]


def _golden(
    answers: Answers, thresholds: Thresholds, golden: Sequence[Sentence]
) -> Iterator[Result]:
    """Yield whether enough golden sentences of each class are right, if they were sent."""
    least = thresholds.min_golden
    for label in CLASSES:
        right = [
            CLASSES[probability > THRESHOLD] == label
            for (own, _), probability in zip(golden, answers.golden, strict=False)
            if own == label
        ]
        if right:
            share = sum(right) / len(right)
            cause = (
                f"{sum(right)} of {len(right)} {label} golden sentences are right, "
                f"serving_check.min_golden requires {least:g}; check the model, or set "
                "serving_check.golden to sentences of its data"
            )
            # No model can miss 0.
            yield Result(f"golden_{label}", share, least or None, "", share >= least, cause)
