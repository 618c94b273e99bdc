"""A run that is killed leaves nothing that a later run trips over."""

import pytest

from tests.e2e.conftest import SETTINGS
from tests.e2e.harness import Workspace

pytestmark = pytest.mark.slow


def test_killed_in_transform_and_in_trainer_then_completed(tmp_path):
    workspace = Workspace(tmp_path, SETTINGS)

    def started(component, output):
        folder = workspace.root / component / output
        return lambda: folder.exists() and any(folder.iterdir())

    output = workspace.run_and_kill(started("Transform", "transformed_examples"))
    assert "failed: Transform: the pipeline's process ended with exit code -9" in output
    assert workspace.pushed() == []

    output = workspace.run_and_kill(started("Trainer", "model"))
    assert "failed: Trainer: the pipeline's process ended with exit code -9" in output
    assert workspace.states(output)["ReviewExampleGen"] == "cached"
    assert workspace.states(output)["Transform"] == "done"
    assert workspace.pushed() == []

    done = workspace.run()
    assert done.returncode == 0, done.stdout + done.stderr
    states = workspace.states(done.stdout)
    assert states["Transform"] == "cached"
    assert states["Trainer"] == states["Pusher"] == "done"
    assert len(workspace.pushed()) == 1
