"""The results of a serving check: the answer of the probe, compared with thresholds and evaluation.

- All signatures that predict, and `predict_text` for single texts, return the same probability for
  the same test review, within TOLERANCE.
- So does the evaluation, within EVALUATION_TOLERANCE, for the test reviews whose predictions it has
  stored. TFX's own executor stores none.
- The test split has as many reviews as the evaluation has counted.
- If all Examples of the test split were tried, their accuracy equals that of the evaluation. Only
  Examples whose probability is within TOLERANCE of the threshold may differ.
- If only a sample was tried, the accuracy of the sample is within four standard errors of that of
  the evaluation.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from components.evaluator.metrics import ACCURACY, EXAMPLE_COUNT
from components.sample import Sample
from components.serving_check.golden import Sentence
from components.serving_check.settings import Serving
from serving.predictor import LABELS
from serving.probe import BATCH, EXAMPLE, NGRAMS, SIGNATURES, TEXT, Answer
from trainer_module.export import THRESHOLD

TOLERANCE = 1e-3
"""Greatest difference of two probabilities by rounding, which is that of half precision."""
EVALUATION_TOLERANCE = 1e-2
"""Greatest difference between the evaluation and the check, which is on the CPU. A GPU multiplies
matrices with ten bits (TF32)."""
_STANDARD_ERRORS = 4


class Evaluated(NamedTuple):
    """What is compared of an evaluation.

    Attributes:
      metrics: metric -> value on the whole test split.
      predictions: index of an Example of the sample -> its probability; empty if none are stored.
    """

    metrics: Mapping[str, float]
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
    answer: Answer,
    failure: str,
    settings: Serving,
    sample: Sample,
    evaluated: Evaluated,
    golden: Sequence[Sentence],
) -> dict[str, Any]:
    """Return the content of `check.json`.

    Its structure is flat: `passed`; `cause`, one line, empty if the model passed; `results`, a list
    of objects with the attributes of `Result` except `cause`; `golden_mistakes`, a list of objects
    with `text`, `label` and the `probability` that the review is positive.

    Args:
      answer: the results of the probe.
      failure: the reason for which the probe did not finish; empty if it did.
      settings: the thresholds.
      sample: the Examples that the probe tried.
      evaluated: the evaluation of the model.
      golden: the golden sentences.
    """
    mistakes = _mistakes(answer, golden)
    results = [
        Result("process", failure or "finished", None, "", not failure, failure),
        *_signatures(answer),
        *_thresholds(answer, settings),
        *_agreement(answer, sample),
        *_evaluation(answer, sample, evaluated.predictions),
        *_accuracy(answer, sample, evaluated.metrics),
        *_golden(answer, settings, golden, mistakes),
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


def _signatures(answer: Answer) -> Iterator[Result]:
    """Yield whether the model has all signatures, if it was loaded."""
    if answer.signatures:
        missing = [name for name in SIGNATURES if name not in answer.signatures]
        cause = f"the model has no signature {' and no '.join(missing)}"
        yield Result("signatures", ", ".join(answer.signatures), None, "", not missing, cause)


def _thresholds(answer: Answer, settings: Serving) -> Iterator[Result]:
    """Yield the measurements that were made."""
    greatest = (
        ("load_seconds", answer.load_seconds, "max_load_seconds", "s", "loading took"),
        ("memory_mb", answer.memory_mb, "max_memory_mb", "MiB", "the process used"),
        ("p99_ms", answer.p99_ms, "max_p99_ms", "ms", "the p99 latency of single requests is"),
    )
    for name, value, key, unit, subject in greatest:
        if value is not None:
            allowed = getattr(settings, key)
            cause = f"{subject} {_number(value)} {unit}, serving.{key} allows {allowed:g}"
            yield Result(name, value, allowed, unit, value <= allowed, cause)
    if answer.reviews_per_second is not None:
        value, least = answer.reviews_per_second, settings.min_reviews_per_second
        cause = (
            f"the throughput in batches of {BATCH} is {_number(value)} reviews per second, "
            f"serving.min_reviews_per_second requires {least:g}"
        )
        yield Result("reviews_per_second", value, least, "reviews/s", value >= least, cause)


def _agreement(answer: Answer, sample: Sample) -> Iterator[Result]:
    """Yield whether all kinds of requests return the same probability for the same review."""
    if not answer.finished:
        return
    expected = len(sample.examples)
    found = {EXAMPLE: answer.by_example, TEXT: answer.by_text}
    if NGRAMS in answer.signatures:
        found[NGRAMS] = answer.by_ngrams
    counts = [len(predictions) for predictions in found.values()]
    tried = min(expected, BATCH)
    if set(counts) != {expected} or answer.transformed != tried:
        cause = (
            f"{_listed(found)} returned {_listed(f'{count:,}' for count in counts)} predictions "
            f"for {expected:,} reviews, and transform_features returned the features of "
            f"{answer.transformed} of {tried}"
        )
        yield Result("predictions", min(counts), expected, "", False, cause)
        return
    # `by_single` is shorter: only the first texts were tried in requests of their own.
    others = {**found, f"{TEXT} for a single text": answer.by_single}
    pairs = [
        (way, one, other)
        for way, predictions in others.items()
        for one, other in zip(answer.by_text, predictions, strict=False)
    ]
    largest, wrong = _compared([(one, other) for _, one, other in pairs], TOLERANCE)
    cause = ""
    if wrong is not None:
        way, one, other = pairs[wrong]
        cause = (
            f"predict_text returned the probability {one:.4f} for a test review, and {way} "
            f"returned {other:.4f} for the same review"
        )
    yield Result("largest_difference", largest, TOLERANCE, "", not cause, cause)


def _evaluation(
    answer: Answer, sample: Sample, predictions: Mapping[int, float]
) -> Iterator[Result]:
    """Yield whether the answers are those of the evaluation, review by review."""
    if not answer.finished or len(answer.by_example) != len(sample.examples):
        return
    if not predictions:
        yield Result("evaluation_difference", "no predictions are stored", None, "", True)
        return
    pairs = [(answer.by_example[number], value) for number, value in predictions.items()]
    largest, wrong = _compared(pairs, EVALUATION_TOLERANCE)
    cause = ""
    if wrong is not None:
        found, expected = pairs[wrong]
        cause = (
            f"serving_default returned the probability {found:.4f} for a test review, and "
            f"the evaluation has {expected:.4f} for the same review"
        )
    yield Result("evaluation_difference", largest, EVALUATION_TOLERANCE, "", not cause, cause)


def _compared(pairs: Sequence[tuple[float, float]], tolerance: float) -> tuple[float, int | None]:
    """Return the difference of the first pair that differs by more than `tolerance`, and its index.

    If there is no such pair, return the greatest difference and None.
    """
    differences = [abs(one - other) for one, other in pairs]
    for number, value in enumerate(differences):
        # A comparison with NaN is false, so a prediction that is not a number does not pass.
        if not value <= tolerance:
            return value, number
    return max(differences, default=0.0), None


def _accuracy(answer: Answer, sample: Sample, evaluation: Mapping[str, float]) -> Iterator[Result]:
    """Yield whether the accuracy on the sample agrees with that of the evaluation."""
    total, counted = len(sample.labels), round(evaluation[EXAMPLE_COUNT])
    if sample.total != counted:
        cause = f"the test split has {sample.total:,} reviews, the evaluation counted {counted:,}"
        yield Result("examples", sample.total, counted, "", False, cause)
    if not answer.finished or not total or len(answer.by_example) != total:
        return
    predicted = [probability > THRESHOLD for probability in answer.by_example]
    right = sum(guess == label for guess, label in zip(predicted, sample.labels, strict=True))
    expected = evaluation[ACCURACY]
    if sample.is_whole:
        near = [p for p in answer.by_example if abs(p - THRESHOLD) <= TOLERANCE]
        # Half an Example allows for the rounding of the accuracy itself.
        allowed = (len(near) + 0.5) / total
        of_what = f"the {total:,} test reviews"
    else:
        # The standard error of an accuracy of 0 or 1 would be 0.
        share = min(max(expected, 1 / total), 1 - 1 / total)
        allowed = _STANDARD_ERRORS * math.sqrt(share * (1 - share) / total)
        of_what = f"a sample of {total:,} test reviews"
    difference = abs(right / total - expected)
    cause = (
        f"the accuracy on {of_what} is {right / total:.4f}, the evaluation reports {expected:.4f}"
    )
    passed = difference <= allowed
    yield Result("accuracy_difference", difference, allowed, "", passed, cause)


def _mistakes(answer: Answer, golden: Sequence[Sentence]) -> list[dict[str, Any]]:
    if len(answer.golden) != len(golden):
        return []
    return [
        {"text": text, "label": label, "probability": round(probability, 4)}
        for (label, text), probability in zip(golden, answer.golden, strict=True)
        if LABELS[probability > THRESHOLD] != label
    ]


def _golden(
    answer: Answer,
    settings: Serving,
    golden: Sequence[Sentence],
    mistakes: Sequence[Mapping[str, Any]],
) -> Iterator[Result]:
    """Yield whether enough golden sentences are right, if they were tried."""
    if not answer.golden:
        return
    total = len(golden)
    right = total - len(mistakes) if len(answer.golden) == total else 0
    cause = (
        f"{right} of {total} golden sentences are right, serving.min_golden requires "
        f"{settings.min_golden:g}; check the model, or set serving.golden to sentences of its data"
    )
    share = right / total
    yield Result("golden", share, settings.min_golden, "", share >= settings.min_golden, cause)


def _listed(items: Iterable[str]) -> str:
    """Return `a, b and c`."""
    *first, last = items
    return f"{', '.join(first)} and {last}" if first else last


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
