"""The verdict on a run, in one sentence."""

import math

import pytest

from components.evaluator.gates import Check, deciding
from components.run_report.verdict import UNFINISHED, Decision, judge

ACCURACY = Check("accuracy is 0.9669, evaluation.min_accuracy requires 0.7", True, 0.2669)
RECALL = Check("recall is 0.5000 (5 of 10), evaluation.min_class_recall requires 0.4", True, 0.1)
MISSED = Check("accuracy is 0.6000, evaluation.min_accuracy requires 0.7", False, -0.1)
UNKNOWN = Check("recall was not checked", False, math.nan)


@pytest.mark.parametrize(
    ("checks", "found"),
    [
        ([], []),
        ([ACCURACY, RECALL], [RECALL.sentence]),
        ([ACCURACY, MISSED, UNKNOWN], [MISSED.sentence, UNKNOWN.sentence]),
    ],
)
def test_missed_thresholds_decide_or_the_one_that_was_nearly_missed(checks, found):
    assert deciding(checks) == found


@pytest.mark.parametrize(
    ("decision", "sentence", "is_good"),
    [
        (
            Decision(True, ["accuracy is 0.9"], pushed=True),
            "The model is blessed and was pushed: accuracy is 0.9.",
            True,
        ),
        (
            Decision(True, []),
            "The model is blessed and was not pushed: no threshold is set.",
            True,
        ),
        (
            Decision(False, ["accuracy is 0.6", "recall is 0.1"]),
            "The model is not blessed and was not pushed: accuracy is 0.6; recall is 0.1.",
            False,
        ),
        (
            Decision(True, ["accuracy is 0.9"], refused="p95 is 300 ms."),
            "The model is blessed, but failed the serving check and was not pushed: p95 is 300 ms.",
            False,
        ),
        (Decision(None, error="Trainer: no room"), "The run failed: Trainer: no room.", False),
        # Early records lack the thresholds.
        (Decision(True), "The model is blessed and was not pushed.", True),
        (Decision(None), "The run did not evaluate a model.", None),
    ],
)
def test_the_sentence_contains_the_figure_that_decided(decision, sentence, is_good):
    verdict = judge(decision)
    assert (verdict.sentence, verdict.is_good) == (sentence, is_good)


@pytest.mark.parametrize(
    ("decision", "result"),
    [
        (Decision(True, pushed=True, error="boom"), "failed"),
        (Decision(None), UNFINISHED),
        (Decision(False, refused="too slow"), "not blessed"),
        (Decision(True, refused="too slow"), "refused"),
        (Decision(True, pushed=True), "pushed"),
        (Decision(True), "blessed"),
    ],
)
def test_the_first_reason_of_a_run_is_its_result(decision, result):
    assert decision.result == result
