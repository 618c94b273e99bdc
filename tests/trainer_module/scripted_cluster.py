"""Local clusters whose processes are scripts that train nothing."""

import sys
import time
from pathlib import Path

import pytest

from tests.waiting import wait
from trainer_module.cluster import local
from trainer_module.settings import Training, TrainingJob

REPOSITORY = str(Path(__file__).parents[2])

# The first lines of each stand-in for `trainer_module.task`. `me` is the name of its task; `note`
# writes a file with a text about it; `wait_for` waits for the file of another task, and
# `wait_until_gone` for its end.
STAND_IN = """
import json, os, signal, socket, sys, time
from pathlib import Path

config = json.loads(os.environ.get("TF_CONFIG", "null"))
me = "{type} {index}".format(**config["task"]) if config else "alone"
folder = Path(sys.argv[1]).parent

def note(kind, text=""):
    unfinished = folder / f".{kind} {me} {os.getpid()}"
    unfinished.write_text(str(text))
    unfinished.rename(folder / f"{kind} {me} {os.getpid()}")

def wait_for(kind, whom, seconds=120):
    deadline = time.monotonic() + seconds
    while not list(folder.glob(f"{kind} {whom} *")):
        assert time.monotonic() < deadline, f"{whom} did not {kind}"
        time.sleep(0.01)

def wait_until_gone(whom):
    wait_for("started", whom)
    [file] = folder.glob(f"started {whom} *")
    while Path("/proc", file.name.split()[-1]).exists():
        time.sleep(0.01)

def attach():
    from core.events import Sender
    return Sender.attach()

note("started")
"""
FOREVER = "time.sleep(600)"
SERVE = f'if me != "chief 0": {FOREVER}\n'


class ScriptedCluster:
    """A folder with a job, and a local cluster of scripts that run instead of the training."""

    def __init__(self, folder):
        self.folder = folder

    def job(self, **training):
        return TrainingJob(
            train_files=["train-*"],
            eval_files=["eval-*"],
            transform_graph="graph",
            serving_model_dir="model",
            model_run_dir=str(self.folder),
            checkpoint_dir="checkpoints",
            training=Training(**training),
        )

    def command(self, script):
        file = self.folder / "stand_in.py"
        file.write_text(STAND_IN + script)
        return [sys.executable, str(file)]

    def run(self, script, workers=2, strategy="multi_worker_mirrored", **training):
        job = self.job(workers=workers, strategy=strategy, **training)
        local.run(job, self.command(script))

    def notes(self, kind):
        """Return the notes as (task, process id) -> text."""
        found = {}
        for file in self.folder.glob(f"{kind} *"):
            words = file.name.split()
            found[" ".join(words[1:-1]), int(words[-1])] = file.read_text()
        return found

    def texts(self, kind):
        """Return the notes as task -> text."""
        return {name: text for (name, _), text in self.notes(kind).items()}

    def alive(self):
        return [name for name, pid in self.notes("started") if Path(f"/proc/{pid}").exists()]

    wait = staticmethod(wait)


def failure(scripted, script, **training):
    """Run a script that fails within a minute, and return the message of the error."""
    started = time.monotonic()
    with pytest.raises(local.TrainingFailed) as error:
        scripted.run(script, **training)
    assert time.monotonic() - started < 60
    assert len(str(error.value).splitlines()) == 1
    return str(error.value)
