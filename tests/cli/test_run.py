"""The lines at the end of a run, and the exit code."""

import math
import os
import shlex
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path

import pytest
from rich.console import Console

import tests.outcomes
from cli.options import settings_options
from cli.run import show
from cli.run_state import RunState
from components.line_counts import LineCounts
from components.run_report.outcome import Outcome
from core.events import Failed
from pipeline.config import PipelineConfig
from tests.checkout import CHECKOUT

OUTCOME = replace(tests.outcomes.OUTCOME, other_classes="nothing is served")
SHOWN = [
    "lines     0 read: 0 train, 0 eval, 0 test, 0 rejected",
    "read as   CSV: label `stars`",
    "unused    no line of b.csv can be used: bad_label 3; the first: label: x",
    "curve     loss 0.7000 ▇▅▃▂▁ 0.1000 in 1,200 steps",
    "accuracy  0.9123 (95 %: 0.9012 to 0.9234)   AUC 0.9500 (test split; always answering positive "
    "would give 0.5000)",
    "compared  with no model: nothing is served",
    "report    /runs/[1]/report.html",
]


def end(watched, options="", **settings):
    """Return the exit code, and the lines that are printed."""
    printed, config = StringIO(), PipelineConfig.model_validate(settings)
    code = show(Console(file=printed, width=200), config, watched, Path("/log"), options)
    return code, printed.getvalue().splitlines()


def test_the_next_command_has_the_settings_of_the_run():
    options = settings_options("my file.yaml", ["paths.root=r", "training.model=text_cnn"])
    _, lines = end(RunState(outcome=OUTCOME), options)
    assert shlex.split(lines[-1].removeprefix("next: ")) == [
        *("amazon-reviews", "predict", "--config", "my file.yaml"),
        *("--set", "paths.root=r", "--set", "training.model=text_cnn", "Battery died in a week"),
    ]
    assert settings_options(None, None) == ""


@pytest.mark.parametrize(
    ("interrupted", "wrong_input", "code", "line"),
    [
        (True, False, 130, "interrupted: Trainer; run again to continue"),
        (False, True, 2, "failed: Trainer: [boom]"),
        (False, False, 1, "failed: Trainer: [boom]"),
    ],
)
def test_a_failure_names_component_error_and_log_on_standard_error(
    interrupted, wrong_input, code, line, capfd
):
    failed = Failed("[boom]", "Trainer", wrong_input)
    assert end(RunState(failure=failed, interrupted=interrupted)) == (code, [])
    assert capfd.readouterr().err.splitlines() == [line, "log: /log"]


@pytest.mark.parametrize(
    ("outcome", "destination", "code", "last"),
    [
        ({}, "none", 0, "not pushed (push.destination: none)"),
        ({}, "filesystem", 0, 'next: amazon-reviews predict "Battery died in a week"'),
        (
            {"blessed": False, "thresholds": ("too bad", "too low")},
            "filesystem",
            3,
            "verdict   The model is not blessed and was not pushed: too bad; too low.",
        ),
        (
            {"refused": "too slow"},
            "filesystem",
            3,
            "verdict   The model is blessed, but failed the serving check and was not pushed: "
            "too slow.",
        ),
    ],
)
def test_the_last_line_and_the_exit_code(outcome, destination, code, last):
    found, lines = end(
        RunState(outcome=replace(OUTCOME, **outcome)), push={"destination": destination}
    )
    assert (found, lines[-1], lines[: len(SHOWN)]) == (code, last, SHOWN)
    assert ("pushed to /serving/7" in lines) == last.startswith("next")
    verdict = "The model is blessed and was pushed: accuracy is 0.9123, evaluation.min_accuracy"
    pushed = [line for line in lines if line.startswith(f"verdict   {verdict} requires 0.85.")]
    assert len(pushed) == (not outcome)


def test_the_recommended_text_is_not_a_review_if_the_labels_are_other_ones():
    _, lines = end(
        RunState(outcome=OUTCOME), options=" --config desk.yaml", data={"labels": "each"}
    )
    assert lines[-1] == "next: amazon-reviews predict --config desk.yaml TEXT"


@pytest.mark.parametrize(
    ("watched", "code"),
    [
        (RunState(outcome=OUTCOME), 0),
        (RunState(outcome=replace(OUTCOME, blessed=False)), 3),
        (RunState(failure=Failed("boom", "Trainer")), 1),
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
    outcome = replace(OUTCOME, other_classes="", baseline="version 7", accuracy_change=-0.003)
    line = "compared  accuracy 0.0030 below version 7, which has 0.9153"
    assert line in end(RunState(outcome=outcome))[1]
    note = "golden sentences not applied"
    assert f"serving check: {note}" in end(RunState(outcome=replace(OUTCOME, not_checked=note)))[1]
    line = "compared  with no model: no other model is served from /s"
    alone = RunState(outcome=replace(OUTCOME, other_classes=""))
    assert line in end(alone, paths={"serving": "/s"})[1]


def test_the_result_of_a_span_that_differs_from_that_of_the_served_model():
    sentence = "alarm of severity high (words): retrain with these reviews"
    outcome = replace(OUTCOME, drift=sentence, severity="high")
    assert f"new span  {sentence}" in end(RunState(outcome=outcome))[1]
    assert not [line for line in end(RunState(outcome=OUTCOME))[1] if line.startswith("new span")]


def test_the_result_of_more_than_two_classes():
    clause = "version 7 has other classes: it has negative, positive, and this model 1, 2, 3"
    missing = "The test split has no reviews of the class 3, so it was not tested."
    outcome = replace(
        OUTCOME,
        auc=math.nan,
        metrics={"accuracy": 0.6, "macro F1": 0.51239, "mean absolute error": 0.43219},
        other_classes=clause,
        not_tested=missing,
        class_count=3,
    )
    _, lines = end(RunState(outcome=outcome))
    assert (
        "accuracy  0.9123 (95 %: 0.9012 to 0.9234)   macro F1 0.5124   mean absolute error 0.4322 "
        "(test split; always answering positive would give 0.5000)"
    ) in lines
    assert f"not tested: {missing}" in lines
    assert f"compared  with no model: {clause}" in lines
    # The test split of two classes may have one of them only.
    _, lines = end(RunState(outcome=replace(OUTCOME, auc=math.nan)))
    assert any("   AUC nan (" in line for line in lines)


def test_a_model_that_is_not_blessed_but_served_is_a_line():
    """After an earlier run with lower thresholds "was not pushed" is not "is not served"."""
    served = replace(OUTCOME, blessed=False, pushed_to="", served_as="7")
    code, lines = end(RunState(outcome=served))
    assert code == 3
    assert lines[-1].startswith("still served: version 7, which an earlier run pushed, is this")
    assert "amazon-reviews rollback" in lines[-1]
    _, lines = end(RunState(outcome=replace(served, served_as="")))
    assert not [line for line in lines if line.startswith("still served")]


def test_the_default_training_on_few_texts_names_the_command_with_a_better_one():
    def commands(train_texts, **settings):
        lines = LineCounts(examples=Counter(train=train_texts))
        # Several GPUs have few steps with many texts, too.
        state = RunState(outcome=replace(OUTCOME, lines=lines, steps=6))
        shown = end(state, " --config mine.yaml", **settings)[1]
        return [line for line in shown if line.startswith("a training for few texts")]

    of_user = {"input_base": "/reviews"}
    [command] = commands(3_000, data=of_user)
    assert ": amazon-reviews run --config mine.yaml --set 'transform." in command
    assert "batch_size_per_replica: 64" in command
    assert not commands(3_000)  # the sample
    assert not commands(3_000, data=of_user, training={"epochs": 3})
    assert not commands(20_001, data=of_user)


def test_a_warm_start_that_was_skipped_is_a_line():
    _, lines = end(RunState(outcome=replace(OUTCOME, skipped_warm_start="vocabulary differs")))
    assert "training  no warm start, the weights are new: vocabulary differs" in lines


def test_the_record_of_an_early_run_has_no_curve_and_no_figure_that_decided():
    stored = OUTCOME.to_json()
    for name in ("thresholds", "loss_curve", "steps", "accuracy_interval"):
        del stored[name]
    _, lines = end(RunState(outcome=Outcome.from_json(stored)))
    assert "verdict   The model is blessed and was pushed." in lines
    assert not [line for line in lines if line.startswith("curve")]
    _, lines = end(
        RunState(outcome=Outcome.from_json({**stored, "blessed": False, "reasons": ["x"]}))
    )
    assert lines[-1].endswith("was not pushed: x.")


@pytest.mark.parametrize("width", [40, 100])
def test_a_terminal_breaks_sentences_between_words_and_no_path(width):
    printed = StringIO()
    console = Console(file=printed, width=width, force_terminal=True, no_color=True)
    long = "/folder" * 20
    outcome = replace(OUTCOME, thresholds=("too bad, " * 20,), report=long, blessed=False)
    show(console, PipelineConfig(), RunState(outcome=outcome), Path("/log"))
    lines = printed.getvalue().splitlines()
    assert f"report    {long}" in lines
    assert max(len(line) for line in lines if long not in line) <= width
    assert any(line.startswith("          ") and "too bad," in line for line in lines)
    assert "\x1b[3" not in printed.getvalue()


def test_the_curve_is_shorter_in_a_narrow_terminal_and_ascii_without_utf_8(monkeypatch):
    def curve(width, encoding):
        file = TextIOWrapper(BytesIO(), encoding=encoding)
        outcome = replace(OUTCOME, loss_curve=[1 / n for n in range(1, 33)])
        show(Console(file=file, width=width), PipelineConfig(), RunState(outcome=outcome))
        file.seek(0)
        [line] = [line for line in file if line.startswith("curve")]
        return line.split()[3]

    assert len(curve(100, "utf-8")) == 32
    assert len(curve(40, "utf-8")) == 8
    assert set(curve(100, "utf-8")) <= set("▁▂▃▅▇")
    assert set(curve(100, "ascii")) <= set("_.-=#")


def test_an_equal_accuracy_is_neither_above_nor_below_that_of_the_served_model():
    outcome = replace(OUTCOME, other_classes="", baseline="version 6", accuracy_change=0.0, steps=1)
    _, lines = end(RunState(outcome=outcome))
    assert "compared  the accuracy is that of version 6" in lines
    assert any(line.startswith("curve") and line.endswith(" in 1 step") for line in lines)


@pytest.mark.parametrize("locale", [{"LC_ALL": "C"}, {"LANG": "POSIX"}])
def test_the_locale_c_gets_ascii_characters_and_texts_as_they_are(locale):
    code = (
        "from cli.console import ellipsis, out\n"
        "from rich.progress_bar import ProgressBar\n"
        "out.print(ProgressBar(10, 5, 8)); out.print(); out.print(ellipsis(out), 'Grüße')"
    )
    environ = {key: value for key, value in os.environ.items() if key[:3] not in ("LC_", "LAN")}
    environ.pop("PYTHONUTF8", None)

    def printed(**locale):
        command = [sys.executable, "-c", code]
        return subprocess.check_output(command, env={**environ, **locale}, cwd=CHECKOUT).decode()

    assert printed(**locale).split() == ["----", "...", "Grüße"]
    assert printed(LANG="C.UTF-8").split() == ["━━━━", "…", "Grüße"]
