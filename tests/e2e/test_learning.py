"""What is off by default: a warm start from the latest blessed model, and the Tuner."""

import pytest

from tests.e2e.conftest import SETTINGS
from tests.e2e.harness import Workspace


@pytest.mark.slow
def test_a_warm_start_and_a_tuner(tmp_path):
    workspace = Workspace(tmp_path, SETTINGS)

    def log():
        return max((workspace.root / "logs").iterdir()).read_text()

    # Nothing is blessed yet, so there is nothing to start from.
    first = workspace.run("training.warm_start=true")
    assert first.returncode == 0, first.stdout + first.stderr
    assert "Warm start" not in log()
    assert len(workspace.pushed()) == 1
    tuned = workspace.run("training.warm_start=true,training.epochs=1,training.tuner_trials=2")
    assert tuned.returncode == 0, tuned.stdout + tuned.stderr
    assert workspace.states(tuned.stdout)["Tuner"] == "done"
    assert workspace.artifacts()["TunerResults"] == 1
    # The trials found other hyperparameters than the blessed model's.
    assert "Warm start: no, hyperparameters ({}, now {'scale_floor': " in log()
    assert len(workspace.pushed()) == 2
