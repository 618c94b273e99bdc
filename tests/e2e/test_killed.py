"""A killed run does not prevent a later run from completing."""

import pytest

from tests.e2e.conftest import LITTLE
from tests.e2e.harness import PIPELINE_NODES, Workspace

pytestmark = pytest.mark.slow

MANY = "training.epochs=80"


def resumed(workspace):
    """Return whether the last run continued a training, and removed its checkpoints."""
    log = max((workspace.root / "logs").iterdir()).read_text()
    left = list((workspace.root / "checkpoints").iterdir())
    return "Resuming after step" in log and not left


def test_a_run_killed_in_the_trainer_is_completed_from_the_cache_and_the_checkpoint(tmp_path):
    workspace = Workspace(tmp_path, LITTLE)
    checkpoints = workspace.root / "checkpoints"
    output = workspace.run_and_kill(lambda: list(checkpoints.glob("*/checkpoint")), MANY)
    assert "failed: Trainer: the pipeline's process ended with exit code -9" in output
    assert workspace.pushed() == []

    done = workspace.run(MANY)
    assert done.returncode == 0, done.stdout + done.stderr
    states = workspace.states(done.stdout)
    assert states["ReviewExampleGen"] == states["Transform"] == "cached"
    assert states["Trainer"] == states["Pusher"] == "done"
    assert resumed(workspace)
    assert len(workspace.pushed()) == 1


@pytest.mark.exhaustive
def test_a_run_killed_in_transform_and_then_without_the_cache_in_the_trainer(tmp_path):
    # These runs also have no Pusher.
    workspace = Workspace(tmp_path, {**LITTLE, "push": {"destination": "none"}})
    written = workspace.root / "Transform" / "transformed_examples"
    output = workspace.run_and_kill(lambda: written.exists() and any(written.iterdir()), MANY)
    assert "failed: Transform: the pipeline's process ended with exit code -9" in output

    checkpoints = workspace.root / "checkpoints"
    overrides = f"cache=false,{MANY}"
    output = workspace.run_and_kill(lambda: list(checkpoints.glob("*/checkpoint")), overrides)
    assert workspace.states(output)["ReviewExampleGen"] == "done"

    done = workspace.run(overrides)
    assert done.returncode == 0, done.stdout + done.stderr
    # Every component ran again and wrote to other folders; the content of the Examples is the same.
    states = workspace.states(done.stdout)
    assert set(states.values()) == {"done"}
    assert states.keys() == {*PIPELINE_NODES} - {"Pusher"}
    assert resumed(workspace)
    assert "not pushed (push.destination: none)" in done.stdout
    assert workspace.pushed() == []
