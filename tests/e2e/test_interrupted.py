"""Runs that are interrupted or killed at any moment, and the run that completes them."""

import os
import pty
import re
import signal
from pathlib import Path

import pytest

from pipeline.config import load_config
from pipeline.selected_nodes import node_ids
from tests.e2e.conftest import LITTLE
from tests.e2e.harness import COMMAND, PIPELINE_NODES, Run, Workspace
from tests.waiting import wait


def test_ctrl_c_ends_a_run_while_the_command_is_imported(tmp_path):
    workspace = Workspace(tmp_path, {})
    run = Run(workspace)
    maps = Path(f"/proc/{run.process.pid}/maps")
    run.until(lambda: "_pydantic_core" in maps.read_text())
    run.end()


MANY = "training.epochs=40"


def resumed(workspace):
    """Return whether the last run continued a training, and removed its checkpoints."""
    log = max((workspace.root / "logs").iterdir()).read_text()
    left = list((workspace.root / "checkpoints").iterdir())
    return "Resuming after step" in log and not left


@pytest.mark.slow
def test_a_training_is_interrupted_and_killed_and_completed(tmp_path):
    workspace = Workspace(tmp_path, LITTLE)
    checkpoints = workspace.root / "checkpoints"

    def saved():
        return set(checkpoints.rglob("*.index"))

    run = Run(workspace, MANY)
    # The first checkpoint is written at the end of an epoch.
    run.until(saved)
    printed = run.end()
    assert "the training saves a checkpoint" in printed
    assert "interrupted: Trainer; run again to continue" in printed
    [log] = workspace.root.glob("logs/*.log")
    assert "SIGTERM: saved after step" in log.read_text()

    before = saved()
    output = workspace.run_and_kill(lambda: saved() - before, MANY)
    assert "failed: Trainer: the pipeline's process ended with exit code -9" in output
    assert workspace.pushed() == []

    done = workspace.run(MANY)
    assert done.returncode == 0, done.stdout + done.stderr
    states = workspace.states(done.stdout)
    assert states["ReviewExampleGen"] == states["Transform"] == "cached"
    assert states["Trainer"] == states["Pusher"] == "done"
    assert resumed(workspace)
    assert len(workspace.pushed()) == 1


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_run_killed_in_transform_and_ended_without_the_cache_in_the_trainer(tmp_path):
    # These runs also have no Pusher.
    workspace = Workspace(tmp_path, {**LITTLE, "push": {"destination": "none"}})
    written = workspace.root / "Transform" / "transformed_examples"
    output = workspace.run_and_kill(lambda: written.exists() and any(written.iterdir()), MANY)
    assert "failed: Transform: the pipeline's process ended with exit code -9" in output

    checkpoints = workspace.root / "checkpoints"
    overrides = f"cache=false,{MANY}"
    run = Run(workspace, overrides)
    run.until(lambda: list(checkpoints.glob("*/checkpoint")))
    printed = run.end(signal.SIGTERM)
    assert "interrupted: Trainer; run again to continue" in printed
    assert workspace.states(printed)["ReviewExampleGen"] == "done"

    done = workspace.run(overrides)
    assert done.returncode == 0, done.stdout + done.stderr
    # Every component ran again and wrote to other folders; the content of the Examples is the same.
    states = workspace.states(done.stdout)
    assert set(states.values()) == {"done"}
    assert states.keys() == {*PIPELINE_NODES} - {"Pusher"}
    assert resumed(workspace)
    assert "not pushed (push.destination: none)" in done.stdout
    assert workspace.pushed() == []


@pytest.mark.slow
def test_a_terminal_lists_every_component_from_the_first_moment(tmp_path):
    folder = tmp_path / "runs :smile:"
    workspace = Workspace(folder, {})
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.execve(COMMAND, [COMMAND, "run"], {**workspace.env(), "TERM": "xterm", "LINES": "40"})
    seen = b""

    def text():
        nonlocal seen
        seen += os.read(terminal, 65536)
        return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", seen.decode(errors="replace"))

    wait(lambda: "loading TFX" in text(), seconds=300)
    screen = text()
    for name in node_ids(load_config(str(workspace.config), environ={})):
        assert re.search(rf"{name} +waiting", screen), screen
    assert f"log: {workspace.root}/logs/" in screen.replace("\r\n", "")
    os.write(terminal, b"\x03")  # the character that Ctrl-C sends
    with pytest.raises(OSError):  # the terminal was closed
        while True:
            text()
    screen = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", seen.decode(errors="replace"))
    assert "interrupted" in screen
    assert re.search(r"Trainer +not run", screen)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 130
