"""The results of a serving check: thresholds, agreement of the signatures, and causes."""

import math

import pytest

from components.sample import Sample
from components.serving_check import results
from components.serving_check.settings import Serving
from serving.probe import SIGNATURES, Answer, percentile
from tests.components.checked_models import failed

SAMPLE = Sample([b""] * 4, [1, 0, 1, 0], 4)
RIGHT = Answer(
    signatures=sorted(SIGNATURES),
    load_seconds=1.0,
    p99_ms=5.0,
    reviews_per_second=1000.0,
    memory_mb=500.0,
    by_example=[0.9, 0.2, 0.7, 0.4],
    by_text=[0.9, 0.2, 0.7, 0.4],
    by_single=[0.9, 0.2],
    golden=[0.9, 0.1],
    transformed=4,
    finished=True,
)
EVALUATION = {"binary_accuracy": 1.0, "example_count": 4}
TWO_GOLDEN = [("positive", "good"), ("negative", "bad")]


def judged(sample=SAMPLE, evaluation=EVALUATION, predictions=None, **changes):
    answer = Answer(**{**vars(RIGHT), **changes})
    evaluated = results.Evaluated(evaluation, predictions or {})
    return results.check(answer, "", Serving(), sample, evaluated, TWO_GOLDEN)


@pytest.mark.parametrize(
    ("changes", "name", "cause"),
    [
        ({}, None, ""),
        (
            {"load_seconds": 60.4},
            "load_seconds",
            "loading took 60.4 s, serving.max_load_seconds allows 60",
        ),
        (
            {"memory_mb": 5000.0},
            "memory_mb",
            "the process used 5,000 MiB, serving.max_memory_mb allows 4096",
        ),
        (
            {"reviews_per_second": 2.5},
            "reviews_per_second",
            "the throughput in batches of 64 is 2.5 reviews per second, "
            "serving.min_reviews_per_second requires 10",
        ),
        (
            {"by_single": [0.9, 0.3]},
            "largest_difference",
            "predict_text returned the probability 0.2000 for a test review, and predict_text for "
            "a single text returned 0.3000 for the same review",
        ),
        (
            {"by_text": [math.nan, 0.2, 0.7, 0.4]},
            "largest_difference",
            "predict_text returned the probability nan for a test review, and serving_default "
            "returned 0.9000 for the same review",
        ),
        (
            {"by_text": [0.9, 0.2]},
            "predictions",
            "serving_default and predict_text returned 4 and 2 predictions for 4 reviews, and "
            "transform_features returned the features of 4 of 4",
        ),
        (
            {
                "signatures": [*SIGNATURES, "predict_ngrams"],
                "by_ngrams": [0.9, 0.2, 0.7, 0.402],
            },
            "largest_difference",
            "predict_text returned the probability 0.4000 for a test review, and predict_ngrams "
            "returned 0.4020 for the same review",
        ),
        (
            {"signatures": [*SIGNATURES, "predict_ngrams"], "by_ngrams": [0.9]},
            "predictions",
            "serving_default, predict_text and predict_ngrams returned 4, 4 and 1 predictions for "
            "4 reviews, and transform_features returned the features of 4 of 4",
        ),
        (
            {"golden": [0.4, 0.9]},
            "golden",
            "0 of 2 golden sentences are right, serving.min_golden requires 0.6; check the model, "
            "or set serving.golden to sentences of its data",
        ),
    ],
)
def test_each_cause_is_one_line_with_value_and_setting(changes, name, cause):
    found = judged(**changes)
    assert (found["passed"], found["cause"]) == (name is None, cause)
    assert failed(found) == ([name] if name else [])


@pytest.mark.parametrize(
    ("predictions", "passed", "value"),
    [
        ({0: 0.9, 2: 0.7005}, True, 0.0005),
        ({0: 0.9005, 3: 0.42, 2: 0.7}, False, 0.02),
        ({1: math.nan}, False, math.nan),
    ],
)
def test_each_answer_is_that_of_the_evaluation(predictions, passed, value):
    found = judged(predictions=predictions)
    [result] = [one for one in found["results"] if one["name"] == "evaluation_difference"]
    assert result["value"] == pytest.approx(value, nan_ok=True)
    assert (result["passed"], found["passed"]) == (passed, passed)
    if not passed:
        start = "serving_default returned the probability 0."
        assert found["cause"].startswith(start)
        assert found["cause"].endswith(
            f"the evaluation has {predictions.get(3, math.nan):.4f} for the same review"
        )


def test_an_evaluation_without_predictions_is_a_line_in_the_results():
    found = {one["name"]: one["value"] for one in judged()["results"]}
    assert found["evaluation_difference"] == "no predictions are stored"


@pytest.mark.parametrize("sample", [Sample([], [], 0), SAMPLE])
def test_examples_that_are_gone_are_a_failure(sample):
    found = judged(
        sample=sample,
        evaluation={"binary_accuracy": 1.0, "example_count": 5},
        **({} if sample.total else {"by_example": [], "by_text": [], "transformed": 0}),
    )
    cause = f"the test split has {sample.total} reviews, the evaluation counted 5"
    assert found["cause"].startswith(cause)


def test_a_value_at_the_threshold_passes():
    assert judged(load_seconds=60.0, memory_mb=4096.0, p99_ms=1000.0, reviews_per_second=10.0)[
        "passed"
    ]


def test_the_accuracy_equals_that_of_the_evaluation_except_for_rounding():
    wrong = [0.9, 0.6, 0.7, 0.4]
    assert failed(judged(by_example=wrong, by_text=wrong, by_single=[])) == ["accuracy_difference"]
    rounded = [0.9, 0.50001, 0.7, 0.4]
    assert judged(by_example=rounded, by_text=rounded, by_single=[])["passed"]


@pytest.mark.parametrize(("accuracy", "passed"), [(0.9, True), (0.75, True), (0.1, False)])
def test_the_accuracy_of_a_sample_is_near_that_of_the_evaluation(accuracy, passed):
    sample = Sample([b""] * 100, [1, 0] * 50, 10_000)
    right = [0.9, 0.1] * 45 + [0.1, 0.9] * 5  # 90% are right
    evaluation = {"binary_accuracy": accuracy, "example_count": 10_000}
    found = judged(
        sample, evaluation, by_example=right, by_text=right, by_single=[], transformed=64
    )
    assert found["passed"] == passed


@pytest.mark.parametrize(
    ("count", "expected"), [(1, 1), (2, 2), (99, 99), (100, 99), (200, 198), (1000, 990)]
)
def test_the_percentile_is_that_of_the_nearest_rank(count, expected):
    assert percentile(range(count, 0, -1), 0.99) == expected
