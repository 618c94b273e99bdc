"""The output before TFX is loaded; and Ctrl-C at any moment, which ends a run with 130."""

import os
import pty
import re
import signal
import subprocess
from pathlib import Path

import pytest

from pipeline.config import load_config
from pipeline.nodes import node_ids
from tests.e2e.harness import COMMAND, Workspace, _children
from tests.exhaustive import exhaustive
from tests.waiting import wait


class Run:
    """`amazon-reviews run`, started and not yet ended."""

    def __init__(self, workspace):
        self.printed = workspace.folder / "printed"
        with self.printed.open("w") as printed:
            self.process = subprocess.Popen(
                [COMMAND, "run"],
                env=workspace.env(),
                cwd=workspace.folder,
                stdout=printed,
                stderr=subprocess.STDOUT,
            )

    def until(self, sign):
        def came():
            assert self.process.poll() is None, self.printed.read_text()
            return sign()

        wait(came, seconds=300)

    def interrupt(self, number=signal.SIGINT):
        """Send a signal; return the output after the end of all processes of the run."""
        children = _children(self.process.pid)
        self.process.send_signal(number)
        assert self.process.wait(300) == 130, self.printed.read_text()
        wait(lambda: not any(os.path.exists(f"/proc/{child}") for child in children))
        printed = self.printed.read_text()
        assert "Traceback" not in printed
        return printed

    def has_loaded(self, library):
        return library in Path(f"/proc/{self.process.pid}/maps").read_text()

    def has_printed(self, text):
        return text in self.printed.read_text()


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        (lambda run, root: run.has_loaded("_pydantic_core"), ()),
        (lambda run, root: list(root.glob("logs/*.log")), ()),
        (
            lambda run, root: run.has_printed("loading TFX"),
            ("interrupted; run again to continue", "log: "),
        ),
    ],
    ids=["the command is imported", "the pipeline's process starts", "TFX is loaded"],
)
def test_ctrl_c_ends_a_run_at_any_moment(tmp_path, moment, expected):
    workspace = Workspace(tmp_path, {})
    run = Run(workspace)
    run.until(lambda: moment(run, workspace.root))
    printed = run.interrupt()
    assert all(text in printed for text in expected)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, exhaustive(signal.SIGTERM)])
def test_a_signal_in_a_training_saves_a_checkpoint_first(tmp_path, number):
    workspace = Workspace(tmp_path, {"training": {"epochs": 100_000}})
    run = Run(workspace)
    # The first checkpoint is written at the end of an epoch.
    run.until(lambda: list((workspace.root / "checkpoints").rglob("*.index")))
    printed = run.interrupt(number)
    assert "the training saves a checkpoint" in printed
    assert "interrupted: Trainer; run again to continue" in printed
    [log] = workspace.root.glob("logs/*.log")
    assert "SIGTERM: saved after step" in log.read_text()


def test_a_terminal_lists_every_component_from_the_first_moment(tmp_path):
    folder = tmp_path / "runs [bold] :smile: [/]"
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
