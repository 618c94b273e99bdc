"""Features that are off by default: a warm start from the served model, and the Tuner."""

import json

import pytest

from tests.e2e.conftest import SETTINGS
from tests.e2e.harness import Workspace


@pytest.mark.slow
def test_a_warm_start_and_a_tuner(tmp_path):
    workspace = Workspace(tmp_path, SETTINGS)
    settings = "training.warm_start=true,training.tuner_trials=2,training.epochs=1"

    def log():
        return max((workspace.root / "logs").iterdir()).read_text()

    def training():
        return json.loads((workspace.artifact_uri("ModelRun") / "training.json").read_text())

    first = workspace.run(settings)
    assert first.returncode == 0, first.stdout + first.stderr
    assert workspace.states(first.stdout)["Tuner"] == "done"
    # Nothing is blessed yet, so there is nothing to start from.
    assert "Warm start" not in log()
    assert len(workspace.pushed()) == 1
    afresh = training()

    [results] = workspace.artifact_uri("TunerResults").iterdir()
    trials = json.loads(results.read_text())
    best, worst = sorted(trials, key=lambda trial: trial["score"])
    # The score is the eval loss. With the values of the best trial the Trainer has the same loss.
    assert afresh["val_loss"] == pytest.approx(best["score"], rel=0.02)
    assert afresh["val_loss"] < worst["score"]

    second = workspace.run(settings)
    assert second.returncode == 0, second.stdout + second.stderr
    # The best values are the same, so the weights of the model that was pushed fit.
    assert workspace.states(second.stdout)["Tuner"] == "cached"
    assert "Warm start: weights of " in log()
    assert len(workspace.pushed()) == 2
    # The warm training begins where the first training ended.
    warm = training()
    assert warm["loss"] < afresh["loss"]
    assert warm["val_loss"] < afresh["val_loss"] + 0.02
