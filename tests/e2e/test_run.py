"""A first run, an unchanged run and changed runs: cache hits, pushed models and output."""

import json
import re
import shutil
import sys

import pytest

from tests.e2e.harness import ALWAYS, PIPELINE_NODES
from tests.exhaustive import exhaustive

pytestmark = [pytest.mark.slow, pytest.mark.both_stacks, pytest.mark.xdist_group("finished")]


def test_a_run_pushes_a_model_and_prints_its_path(finished):
    workspace, output = finished
    assert workspace.states(output) == {name: "done" for name in PIPELINE_NODES}
    assert "32,000 read: " in output
    assert ", 0 rejected" in output
    assert "read as   fastText: label (1 and 2)\n" in output
    accuracy = float(re.search(r"accuracy  ([\d.]+)", output)[1])
    assert 0.85 <= accuracy < 1.0
    [pushed] = workspace.pushed()
    assert f"compared  with no model: no other model is served from {workspace.serving}\n" in output
    assert f"pushed to {pushed}" in output
    assert "next: amazon-reviews predict" in output
    page = workspace.report(output)
    assert "The model is blessed and was pushed." in page
    assert f">{pushed}</span>" in page
    # The signature with which a server computes a review in less time.
    assert b"predict_ngrams" in (pushed / "saved_model.pb").read_bytes()
    assert "difference between the ways to send" in page, "the check compares the signatures"
    assert "difference from the evaluation" in page, "and compares its answers with the evaluation"
    assert "Not available" not in page
    assert len(page.encode()) < 5_000_000


def test_a_run_stays_on_this_machine(finished, connections):
    assert connections.left_the_machine() == []
    executed = connections.executed()
    assert sys.executable in executed  # the pipeline's own process was recorded
    assert not [program for program in executed if "prism" in program]


def test_an_unchanged_second_run_shows_the_result_of_the_first_one(finished):
    workspace, output = finished
    executions = workspace.executions()
    assert executions == {"COMPLETE": len(PIPELINE_NODES)}
    done = workspace.run()
    assert done.returncode == 0, done.stdout
    assert "unchanged since the run" in done.stdout
    result = output[output.index("lines     ") :]
    assert done.stdout.endswith(result)
    assert workspace.executions() == executions


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("ngram_linear", {"Trainer"}),
        # It reads words, so the vocabulary also passes through the whole pipeline.
        exhaustive("text_cnn", {"Transform", "Trainer"}),
    ],
)
def test_a_model_worse_than_the_served_one_is_not_pushed(finished, model, expected):
    workspace, _ = finished
    # The served model is all that the comparison needs of the run that pushed it.
    shutil.rmtree(workspace.root / "Trainer" / "model")
    # The model is hardly trained.
    done = workspace.run(
        f"training.model={model},training.epochs=1,training.learning_rate=0.000000001,"
        "evaluation.min_accuracy=0.0"
    )
    assert done.returncode == 3, done.stdout + done.stderr
    assert "below that of the baseline" in done.stdout
    assert "evaluation.max_accuracy_drop allows 0.01" in done.stdout
    [pushed] = workspace.pushed()
    assert re.search(
        rf"^compared  accuracy 0\.\d+ below version {pushed.name}, ", done.stdout, re.M
    )
    # The page compares the model with the one that was pushed last; it may be written again.
    file = workspace.folder / "again.html"
    assert workspace.command("report", "--output", str(file)).stdout == f"{file}\n"
    for page in (file.read_text(encoding="utf-8"), workspace.report(done.stdout)):
        assert "The model is not blessed and was not pushed." in page
        assert "evaluation.max_accuracy_drop allows 0.01" in page
        rows = re.findall(r'<tr><th scope="row">accuracy</th>(.*?)</tr>', page, re.DOTALL)
        [changes, metrics] = [re.findall(r"[+−]?\d\.\d{4}", row) for row in rows]
        baseline, value, difference = (float(each.replace("−", "-")) for each in changes)
        assert [float(each) for each in metrics] == pytest.approx([value] * 3, abs=0.1)
        assert value < baseline
        assert difference == pytest.approx(value - baseline, abs=2e-4)
        # The run that pushed the served model is recorded, so its settings are known.
        assert re.search(r"training\.epochs</th><td[^>]*>\d</td><td[^>]*>1</td>", page)
        assert "Reviews that the new model gets wrong and the old one got right" in page
    ran = {name for name, state in workspace.states(done.stdout).items() if state == "done"}
    assert ran == expected | {"Evaluator", "ServingCheck", "Pusher"} | ALWAYS
    assert len(workspace.pushed()) == 1


def test_a_model_that_is_not_served_is_pushed_again_and_only_once(finished):
    workspace, _ = finished
    [model] = workspace.pushed()
    (model / "saved_model.pb").unlink()
    done = workspace.run()
    assert done.returncode == 0, done.stdout + done.stderr
    states = workspace.states(done.stdout)
    assert {states.pop(name) for name in ("Pusher", *ALWAYS)} == {"done"}
    assert set(states.values()) == {"cached"}
    pushed = workspace.pushed()
    assert pushed[-1] != model
    assert f"pushed to {pushed[-1]}" in done.stdout

    done = workspace.run()
    assert "unchanged since the run" in done.stdout
    assert f"pushed to {pushed[-1]}" in done.stdout
    assert workspace.pushed() == pushed


@pytest.mark.exhaustive
def test_the_trainer_uses_the_best_values_of_the_tuner(finished):
    workspace, _ = finished
    done = workspace.run("training.tuner_trials=2,training.epochs=1")
    assert done.returncode in (0, 3), done.stdout + done.stderr
    assert workspace.states(done.stdout)["Tuner"] == "done"
    [results] = workspace.artifact_uri("TunerResults").iterdir()
    best, worst = sorted(trial["score"] for trial in json.loads(results.read_text()))
    # The score is the eval loss. With the values of the best trial the Trainer has the same loss.
    training = json.loads((workspace.artifact_uri("ModelRun") / "training.json").read_text())
    assert training["val_loss"] == pytest.approx(best, rel=0.02)
    assert training["val_loss"] < worst
