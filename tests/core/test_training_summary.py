"""The summary of a training: its file in this and in earlier versions, and its loss curve."""

import json
from dataclasses import replace

import pytest

from core.training_summary import (
    SUMMARY_FILE,
    CurvePoint,
    EpochMetrics,
    TrainingSummary,
    read_summary,
    write_summary,
)
from tests.components.run_report.artifacts import SUMMARY, TRAINING

CURRENT = {
    **TRAINING,
    "parameter_server_bytes": [7, 9],
    "skipped_warm_start": "",
    "skipped_updates": 0,
}


def stored(folder):
    return json.loads((folder / SUMMARY_FILE).read_text())


def test_the_file_keeps_its_keys_and_values(tmp_path):
    (tmp_path / SUMMARY_FILE).write_text(json.dumps(CURRENT))
    found = read_summary(str(tmp_path))
    assert found.metrics == found.epoch_metrics[1] == EpochMetrics(0.4, 0.8, 0.5, 0.7)
    assert found.curve[1] == CurvePoint(2, 1, 0.5, 0.5, 0.1)
    assert (found.measured.steps, found.parameter_server_bytes) == (8, [7, 9])
    write_summary(str(tmp_path / "new"), found)
    assert stored(tmp_path / "new") == CURRENT
    assert read_summary(str(tmp_path / "new")) == found


def test_a_file_of_an_early_version_lacks_what_was_not_known():
    newer = ("strategy_reason", "devices", "epoch_metrics", "curve")
    newer += ("hyperparameters", "learning_rate", "skipped_updates")
    early = {name: value for name, value in CURRENT.items() if name not in newer}
    early |= {"cpu_utilisation": None, "gpu_utilisation": None}
    found = TrainingSummary.from_json(early)
    assert (found.strategy_reason, *map(list, (found.devices, found.epoch_metrics))) == ("", [], [])
    assert (found.loss_curve(), found.measured.cpu_utilisation) == ([], None)


@pytest.mark.parametrize(
    "damaged",
    [
        [],
        None,
        {"model": "ngram_linear"},
        {**CURRENT, "curve": [{"step": 1}]},
        {**CURRENT, "epoch_metrics": 7},
        {name: value for name, value in CURRENT.items() if name != "steps"},
    ],
)
def test_a_damaged_file_is_no_summary(damaged):
    with pytest.raises(ValueError, match=r"^training\.json is incomplete: "):
        TrainingSummary.from_json(damaged)


def test_a_figure_that_is_not_finite_is_not_written(tmp_path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_summary(str(tmp_path), replace(SUMMARY, seconds=float("nan")))
    assert not list(tmp_path.iterdir())


def test_the_loss_curve_has_equal_parts_that_are_means_over_steps():
    points = [CurvePoint(4, 4, 1.0, 0.5, 0.1), CurvePoint(5, 1, 6.0, 0.5, 0.1)]
    assert replace(SUMMARY, curve=points).loss_curve() == [1.0, 6.0]
    many = replace(SUMMARY, curve=points * 32).loss_curve()
    assert many == [2.0] * 32
