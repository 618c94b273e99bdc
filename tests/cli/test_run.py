"""The lines at the end of a run, and the exit code."""

import math
import shlex
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

import tests.outcomes
from cli.monitor import Failure, Watched
from cli.options import settings_options
from cli.run import show
from pipeline.config import PipelineConfig

OUTCOME = replace(tests.outcomes.OUTCOME, reasons=("too bad",))
SHOWN = [
    "lines     0 read: 0 train, 0 eval, 0 test, 0 rejected",
    "read as   CSV: label `stars`",
    "unused    no line of b.csv can be used: bad_label 3; the first: label: x",
    "accuracy  0.9123   AUC 0.9500 (test split; always answering positive would give 0.5000)",
    "report    /runs/[1]/report.html",
]


def end(watched, options="", **settings):
    """Return the exit code, and the lines that are printed."""
    printed, config = StringIO(), PipelineConfig.model_validate(settings)
    code = show(Console(file=printed, width=200), config, watched, Path("/log"), options)
    return code, printed.getvalue().splitlines()


def test_the_next_command_has_the_settings_of_the_run():
    options = settings_options("my file.yaml", ["paths.root=r", "training.model=text_cnn"])
    _, lines = end(Watched(outcome=OUTCOME), options)
    assert shlex.split(lines[-1].removeprefix("next: ")) == [
        *("amazon-reviews", "predict", "--config", "my file.yaml"),
        *("--set", "paths.root=r", "--set", "training.model=text_cnn", "Battery died in a week"),
    ]
    assert settings_options(None, None) == ""


@pytest.mark.parametrize(
    ("failure", "code", "line"),
    [
        ({"interrupted": True}, 130, "interrupted: Trainer; run again to continue"),
        ({"input": True}, 2, "failed: Trainer: [boom]"),
        ({"input": False}, 1, "failed: Trainer: [boom]"),
    ],
)
def test_a_failure_names_component_error_and_log_on_standard_error(failure, code, line, capfd):
    failed = Failure("[boom]", "Trainer", **failure)
    assert end(Watched(failure=failed)) == (code, [])
    assert capfd.readouterr().err.splitlines() == [line, "log: /log"]


@pytest.mark.parametrize(
    ("outcome", "destination", "code", "last"),
    [
        ({}, "none", 0, "not pushed (push.destination: none)"),
        ({}, "filesystem", 0, 'next: amazon-reviews predict "Battery died in a week"'),
        ({"blessed": False}, "filesystem", 3, "not blessed: too bad"),
        ({"refused": "too slow"}, "filesystem", 3, "not pushed: serving check: too slow"),
    ],
)
def test_the_last_line_and_the_exit_code(outcome, destination, code, last):
    found, lines = end(
        Watched(outcome=replace(OUTCOME, **outcome)), push={"destination": destination}
    )
    assert (found, lines[-1], lines[: len(SHOWN)]) == (code, last, SHOWN)
    assert ("pushed to /serving/7" in lines) == last.startswith("next")


def test_the_recommended_text_is_not_a_review_if_the_labels_are_other_ones():
    _, lines = end(Watched(outcome=OUTCOME), options=" --config desk.yaml", data={"labels": "each"})
    assert lines[-1] == "next: amazon-reviews predict --config desk.yaml TEXT"


@pytest.mark.parametrize(
    ("watched", "code"),
    [
        (Watched(outcome=OUTCOME), 0),
        (Watched(outcome=replace(OUTCOME, blessed=False)), 3),
        (Watched(failure=Failure("boom", "Trainer")), 1),
    ],
    ids=["pushed", "not blessed", "failed"],
)
def test_the_result_names_the_runs_that_mlflow_did_not_receive(watched, code, tmp_path):
    settings = {"paths": {"root": str(tmp_path)}, "tracking": {"mlflow": "http://mlflow:5000"}}
    unsent = tmp_path / "unsent"

    def shown(**settings):
        found, lines = end(watched, " --config a.yaml", **settings)
        assert found == code
        return [line for line in lines if line.startswith("MLflow")]

    assert shown(**settings) == []
    unsent.mkdir()
    (unsent / ".lock").touch()
    (unsent / "2026-11-27T10:00:00.json").touch()
    assert shown(**settings) == [
        "MLflow: 1 run was not sent to http://mlflow:5000; "
        "amazon-reviews runs --send --config a.yaml sends it"
    ]
    (unsent / "2026-11-27T11:00:00.json").touch()
    assert "2 runs were not sent" in shown(**settings)[0]
    assert shown(paths=settings["paths"]) == []


def test_the_result_names_the_baseline_and_what_was_not_checked():
    outcome = replace(OUTCOME, baseline="version 7", accuracy_change=-0.003)
    assert "blessed: accuracy 0.0030 below version 7" in end(Watched(outcome=outcome))[1]
    note = "golden sentences not applied"
    assert f"serving check: {note}" in end(Watched(outcome=replace(OUTCOME, not_checked=note)))[1]
    line = "blessed (not compared: no other model is served from /s)"
    assert line in end(Watched(outcome=OUTCOME), paths={"serving": "/s"})[1]


def test_the_result_of_more_than_two_classes():
    clause = "version 7 has other classes: it has negative, positive, and this model 1, 2, 3"
    missing = "The test split has no reviews of the class 3, so it was not tested."
    outcome = replace(
        OUTCOME,
        auc=math.nan,
        metrics={"accuracy": 0.6, "macro F1": 0.51239, "mean absolute error": 0.43219},
        not_compared=clause,
        not_tested=missing,
        class_count=3,
    )
    _, lines = end(Watched(outcome=outcome))
    assert (
        "accuracy  0.9123   macro F1 0.5124   mean absolute error 0.4322 (test split; always "
        "answering positive would give 0.5000)"
    ) in lines
    assert f"not tested: {missing}" in lines
    assert f"blessed (not compared: {clause})" in lines
    _, lines = end(Watched(outcome=replace(outcome, blessed=False)))
    assert f"not blessed: too bad (not compared: {clause})" in lines
    # The test split of two classes may have one of them only.
    _, lines = end(Watched(outcome=replace(OUTCOME, auc=math.nan)))
    assert any(line.startswith("accuracy  0.9123   AUC nan (") for line in lines)
