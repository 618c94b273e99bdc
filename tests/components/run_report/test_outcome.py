"""The outcome of a run, as ML Metadata and the pipe to the parent process have it."""

import dataclasses
import json

import pytest

from components.line_counts import LineCounts
from components.run_report.outcome import Outcome
from tests.outcomes import OUTCOME

LINES = LineCounts.from_file({"examples/train": 2, "rejected/bad_label": 1, "lost_bytes": 7})
KEYS = {
    *("lines", "reading", "unused", "accuracy", "auc", "constant_answer", "baseline"),
    *("accuracy_change", "blessed", "refused", "not_checked", "pushed_to", "report"),
    *("strategy", "metrics", "accuracy_interval", "other_classes", "not_tested"),
    *("class_count", "class_lines", "thresholds", "loss_curve", "steps"),
    *("skipped_warm_start", "drift", "severity", "served_as", "settings_note"),
}


@pytest.mark.parametrize("interval", [(0.9, 0.92), None])
def test_json_keeps_every_value(interval):
    outcome = dataclasses.replace(OUTCOME, lines=LINES, accuracy_interval=interval)
    stored = json.loads(json.dumps(outcome.to_json()))
    assert stored.keys() == KEYS
    assert stored["lines"] == {"examples_train": 2, "rejected_bad_label": 1, "lost_bytes": 7}
    assert Outcome.from_json({**stored, "key_of_a_later_version": 1}) == outcome


def test_an_early_record_lacks_some_keys():
    stored = OUTCOME.to_json()
    for key in ("unused", "strategy", "metrics", "accuracy_interval"):
        del stored[key]
    found = Outcome.from_json(stored)
    assert (found.unused, found.strategy, found.metrics) == ((), "", {})
    assert found.accuracy_interval is None


@pytest.mark.parametrize("reasons", [["accuracy is 0.7"], []])
def test_an_early_record_has_only_the_thresholds_that_were_not_reached(reasons):
    stored = {**OUTCOME.to_json(), "reasons": reasons}
    assert Outcome.from_json(stored) == OUTCOME
    del stored["thresholds"]
    assert Outcome.from_json(stored).thresholds == (tuple(reasons) or None)


@pytest.mark.parametrize("key", ["lines", "blessed", "accuracy"])
def test_a_missing_value_is_not_replaced(key):
    stored = OUTCOME.to_json()
    del stored[key]
    with pytest.raises(ValueError, match=f"incomplete: .*{key}"):
        Outcome.from_json(stored)
