"""A killed run does not prevent a later run from completing."""

import pytest

from tests.e2e.conftest import SETTINGS
from tests.e2e.harness import PIPELINE_NODES, Workspace

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


def test_a_run_without_the_cache_resumes_a_killed_training(tmp_path):
    # This run also has no Pusher.
    push = {"push": {"destination": "none"}}
    workspace = Workspace(tmp_path, {**SETTINGS, **push, "cache": False})
    many = "training.epochs=40"
    checkpoints = workspace.root / "checkpoints"
    workspace.run_and_kill(lambda: list(checkpoints.glob("*/checkpoint")), many)
    assert workspace.pushed() == []

    done = workspace.run(many)
    assert done.returncode == 0, done.stdout + done.stderr
    # Every component ran again and wrote to other folders; the content of the Examples is the same.
    states = workspace.states(done.stdout)
    assert set(states.values()) == {"done"}
    newest = max((workspace.root / "logs").iterdir())
    assert "Resuming after step" in newest.read_text()
    assert list(checkpoints.iterdir()) == []
    assert states.keys() == {*PIPELINE_NODES} - {"Pusher"}
    assert "not pushed (push.destination: none)" in done.stdout
    assert workspace.pushed() == []
