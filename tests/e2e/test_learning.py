"""Features that are off by default: a warm start from the served model, and the Tuner."""

import json

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("finished")]


def training(workspace):
    return json.loads((workspace.artifact_uri("ModelRun") / "training.json").read_text())


@pytest.mark.exhaustive
def test_a_warm_start_continues_with_the_weights_of_the_served_model(finished):
    workspace, _ = finished
    first = training(workspace)
    done = workspace.run("training.warm_start=true,training.epochs=1")
    assert done.returncode in (0, 3), done.stdout + done.stderr
    log = max((workspace.root / "logs").iterdir()).read_text()
    assert "Warm start: weights of " in log, log[-5000:]
    # An epoch that begins with new weights has several times the loss.
    warm = training(workspace)
    assert warm["loss"] < first["epoch_metrics"][0]["loss"] / 2
    assert warm["val_loss"] < first["val_loss"] + 0.02


@pytest.mark.exhaustive
def test_the_trainer_uses_the_best_values_of_the_tuner(finished):
    workspace, _ = finished
    done = workspace.run("training.tuner_trials=2,training.epochs=1")
    assert done.returncode in (0, 3), done.stdout + done.stderr
    assert workspace.states(done.stdout)["Tuner"] == "done"
    [results] = workspace.artifact_uri("TunerResults").iterdir()
    best, worst = sorted(trial["score"] for trial in json.loads(results.read_text()))
    # The score is the eval loss. With the values of the best trial the Trainer has the same loss.
    assert training(workspace)["val_loss"] == pytest.approx(best, rel=0.02)
    assert training(workspace)["val_loss"] < worst
