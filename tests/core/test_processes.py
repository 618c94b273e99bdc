"""Child processes: the modules that they import, the environment that they get, and their end."""

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from core import processes
from core.code_version import PACKAGES
from tests.waiting import alive, wait

BIN = Path(sys.executable).parent
PARENT = """
import subprocess, sys, time
from core import processes
subprocess.Popen(processes.command("busy", sys.argv[1]))
time.sleep(600)
"""
# A call of TensorFlow that waits for another process holds the global interpreter lock.
BUSY = """
import ctypes, os, signal, sys
print(os.getpid(), flush=True)
if sys.argv[1] == "stopped":
    os.kill(os.getpid(), signal.SIGSTOP)
ctypes.PyDLL(None).pause()
"""


@pytest.mark.parametrize(
    "command",
    [[BIN / "amazon-reviews", "--help"], processes.command("trainer_module.task", "--help")],
    ids=lambda command: command[0] if isinstance(command[0], str) else command[0].name,
)
def test_modules_of_the_user_never_replace_ours(tmp_path, command):
    for name in PACKAGES:
        (tmp_path / f"{name}.py").write_text(f"raise SystemExit('{name} of the user')\n")
    environ = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "usage: " in done.stdout.lower()


WITHOUT_A_HOME = """
import os, pwd, sys
def unknown(uid): raise KeyError(uid)
pwd.getpwuid = unknown
assert os.path.expanduser("~") == "~"
"""


def without_a_home(code, *words):
    environ = {name: value for name, value in os.environ.items() if name != "HOME"}
    command = [sys.executable, "-c", WITHOUT_A_HOME + code, *words]
    return subprocess.run(command, env=environ, capture_output=True, text=True)


def test_a_user_without_a_home_has_no_home_in_the_working_directory():
    done = without_a_home("""
from core import processes
processes.set_environment()
print(os.path.expanduser("~/.keras"))
""")
    assert done.stdout.startswith("/")


@pytest.mark.parametrize(
    "words, key",
    [
        (["models", "--set", "data.input_base=~/data"], "data.input_base"),
        (["predict", "--input", __file__, "--output", "~/data"], "--output"),
    ],
)
def test_a_path_below_an_unknown_home_is_one_line_and_no_other_folder(words, key):
    done = without_a_home("from cli.command import main\nmain()\n", *words)
    assert done.returncode == 2
    assert f"{key}: ~/data begins with ~, and no home folder is known for it" in done.stderr
    assert done.stderr.count("\n") == 1


BATCHES = """
import resource, sys, threading
import numpy as np
from core import processes
if sys.argv[1] == "kept": processes.keep_freed_memory()
def run(batches):
    for _ in range(batches):
        arrays = [np.ones(1 << 20) for _ in range(4)]
        del arrays
def measure():
    run(3)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    run(10)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
thread = threading.Thread(target=measure)
thread.start()
thread.join()
"""


def test_memory_that_a_batch_has_freed_is_used_by_the_next_one():
    def new_pages(memory: str) -> int:
        command = [sys.executable, "-c", BATCHES, memory]
        return int(subprocess.run(command, capture_output=True, check=True).stdout)

    # Ten batches have 80,000 pages of 4 KiB, or fewer large ones.
    assert new_pages("kept") * 10 < new_pages("returned")


@pytest.mark.parametrize("state", ["stopped", "waiting"])
def test_a_child_ends_with_its_parent_in_any_state(tmp_path, state):
    (tmp_path / "busy.py").write_text(BUSY)
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, state],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        stdout=subprocess.PIPE,
    )
    with parent:
        child = psutil.Process(int(parent.stdout.readline()))
        wait(lambda: child.status() in (psutil.STATUS_STOPPED, psutil.STATUS_SLEEPING))
        parent.kill()
    wait(lambda: not alive(child))


def test_a_child_whose_parent_has_already_ended_ends_at_once():
    command = processes.command("core.exit_codes")
    assert subprocess.run(command).returncode == 0
    shell = ["sh", "-c", '"$@"; exit $?', "sh", *command]
    assert subprocess.run(shell, stderr=subprocess.DEVNULL).returncode == 128 + 9


def test_only_variables_of_other_jobs_are_ignored_and_named(monkeypatch, capsys):
    knobs = {"OMP_NUM_THREADS": "2", "CUDA_VISIBLE_DEVICES": "0", "TF_CPP_MIN_LOG_LEVEL": "1"}
    others = {"TF_CONFIG": "{}", "KERASTUNER_TUNER_ID": "chief", "KERAS_BACKEND": "jax"}
    for name, value in {**knobs, **others, "TF_USE_LEGACY_KERAS": "1"}.items():
        monkeypatch.setenv(name, value)
    processes.set_environment()
    [line] = capsys.readouterr().err.splitlines()
    assert line.endswith(" jobs: TF_CONFIG, KERASTUNER_TUNER_ID, KERAS_BACKEND")
    assert {name: os.environ[name] for name in knobs} == knobs
    assert "TF_CONFIG" not in os.environ and os.environ["KERAS_BACKEND"] == "tensorflow"
    processes.set_environment()
    assert capsys.readouterr().err == ""


LOWER = """
from core import processes
processes.set_environment()
import tensorflow as tf
print(tf.strings.lower("TITLE", "utf-8").numpy().decode())
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["LANG", "LC_ALL"])
def test_the_locale_of_the_machine_changes_no_word(name):
    """The lower case of `I` is a dotless letter in Turkish."""
    done = subprocess.run(
        [sys.executable, "-c", LOWER],
        env={**os.environ, name: "tr_TR.UTF-8"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "title\n"


IMPORT = """
import gc
from core import processes
with processes.large_imports():
    print(gc.isenabled())
    import unittest.mock
print(gc.isenabled(), gc.get_freeze_count() >= len(vars(unittest.mock)))
"""


def test_the_collector_skips_what_large_imports_create():
    command = [sys.executable, "-c", IMPORT]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True", "True"]
