"""An installation is replaced only by a finished one, whatever ends the new one.

The real `tools.install` runs in a small checkout whose uv is a script. The script creates an
environment and a package in it within milliseconds, and can fail or wait at each of its steps.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.checkout import CHECKOUT
from tests.waiting import wait
from tools import environment, install

STEPS = ("venv", "-r", "-e")
"""A word of each command of uv: the new environment, the pins, the project."""
PYTHON = install.probe(sys.executable).path
UV = """#!/bin/sh
[ "$1" = --version ] && { echo "uv VERSION"; exit; }
for last; do case " $HOLD " in *" $last "*) touch "$AT"; sleep 600;; esac
    case " $FAIL " in *" $last "*) echo "error: no network"; exit 1;; esac; done
if [ "$1" = venv ]; then
    mkdir -p "$last/bin"; ln -s PYTHON "$last/bin/python"
    printf '#!%s/bin/python\\nprint("works")\\n' "$last" >"$last/bin/program"
    chmod +x "$last/bin/program"; echo "VIRTUAL_ENV='$last'" >"$last/bin/activate"
fi
echo "$@" >>"$CALLS"
"""


class Checkout:
    """A small checkout, and the commands in it."""

    def __init__(self, folder):
        self.folder, self.calls, self.at = folder, folder / "calls", folder / "at"
        for name in ("tools", "requirements"):
            shutil.copytree(CHECKOUT / name, folder / name)
        for name in ("Makefile", "pyproject.toml", "setup.py"):
            shutil.copy(CHECKOUT / name, folder)
        programs = folder / ".cache" / "uv" / "bin"
        programs.mkdir(parents=True)
        text = UV.replace("VERSION", environment.uv_version()).replace("PYTHON", sys.executable)
        (programs / "uv").write_text(text)
        (programs / "uv").chmod(0o755)
        (programs / "python").symlink_to(sys.executable)
        # Few interpreters, because an installation runs each of them.
        self.path = f"{folder / 'programs'}:/usr/bin:/bin"
        (folder / "programs").mkdir()
        (folder / "programs" / "python3").symlink_to(PYTHON)

    def start(self, *command, **environ):
        known = {"CALLS": str(self.calls), "AT": str(self.at), "CXX": "sh", "PYENV_ROOT": ""}
        known |= {"HOME": str(self.folder), "PATH": self.path, **environ}
        return subprocess.Popen(
            command or [PYTHON, "-m", "tools.install"],
            cwd=self.folder,
            env={**os.environ, **known},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def install(self, *command, **environ):
        """Run the command to its end; return the exit code, the output and the calls of uv."""
        self.calls.unlink(missing_ok=True)
        process = self.start(*command, **environ)
        output, _ = process.communicate(timeout=120)
        calls = self.calls.read_text().splitlines() if self.calls.exists() else []
        return process.returncode, output, len(calls)

    def change(self):
        """Change what determines the content of .venv."""
        with (self.folder / "pyproject.toml").open("a") as file:
            file.write("# changed\n")

    def works(self):
        """Return whether the program of .venv runs."""
        program = self.folder / ".venv" / "bin" / "program"
        done = subprocess.run(["sh", "-c", str(program)], capture_output=True, text=True)
        return done.stdout == "works\n"

    def stamp(self):
        return environment.read_stamp(self.folder / ".venv")

    def rests(self):
        return [path.name for path in self.folder.glob(".venv.*")]


@pytest.fixture
def checkout(tmp_path):
    made = Checkout(tmp_path / "checkout")
    assert made.install()[::2] == (0, len(STEPS))
    assert made.works() and made.rests() == []
    return made


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
def test_a_failed_installation_leaves_the_earlier_one(checkout, step):
    before = checkout.stamp()
    checkout.change()
    code, output, _ = checkout.install(FAIL=step)
    assert code == 1
    assert "error: no network" in output and "uv failed with exit code 1" in output
    assert checkout.works() and checkout.stamp() == before and checkout.rests() == []
    assert checkout.install()[::2] == (0, len(STEPS))
    assert checkout.works() and checkout.stamp() != before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "number"), [*((step, signal.SIGKILL) for step in STEPS), ("-r", signal.SIGINT)]
)
def test_a_killed_installation_leaves_the_earlier_one(checkout, step, number):
    before = checkout.stamp()
    checkout.change()
    process = checkout.start(HOLD=step)
    wait(checkout.at.exists, 60)
    os.killpg(process.pid, number)
    process.communicate(timeout=60)
    assert process.returncode == (130 if number == signal.SIGINT else -number)
    assert checkout.works() and checkout.stamp() == before
    assert checkout.install()[::2] == (0, len(STEPS))
    assert checkout.works() and checkout.stamp() != before and checkout.rests() == []


@pytest.mark.parametrize("renames", [0, 1])
def test_an_installation_that_is_killed_while_it_replaces_is_finished(checkout, renames):
    """The finished environment is beside .venv, before and after the rename of .venv."""
    new, old, venv = (checkout.folder / name for name in (".venv.new", ".venv.old", ".venv"))
    shutil.copytree(venv, new, symlinks=True)
    if renames:
        venv.rename(old)
    code, _, calls = checkout.install()
    assert (code, calls) == (0, 0)
    assert checkout.works()
    checkout.change()
    assert checkout.install()[::2] == (0, len(STEPS))
    assert checkout.works() and checkout.rests() == []


def test_the_earlier_environment_is_restored_if_the_new_one_is_incomplete(checkout):
    (checkout.folder / ".venv").rename(checkout.folder / ".venv.old")
    (checkout.folder / ".venv.new").mkdir()
    assert checkout.install()[::2] == (0, 0)
    assert checkout.works()


def make(*words):
    return ("make", "--silent", *words, "install")


def test_whoever_calls_an_installed_environment_stays(checkout):
    """An activated .venv, another project's environment, another folder, another python3."""
    venv = checkout.folder / ".venv"
    (venv / "bin" / "python3").symlink_to("python")
    (venv / "bin" / "python3.10").symlink_to("python")
    paths = f"{venv / 'bin'}:{checkout.path}"
    assert checkout.install(*make(), PATH=paths, VIRTUAL_ENV=str(venv))[::2] == (0, 0)
    others = {"VIRTUAL_ENV": "/other", "CONDA_PREFIX": "/conda", "PYTHONPATH": "/other"}
    assert checkout.install(*make(), **others)[::2] == (0, 0)
    other = "/usr/bin/python3"
    if os.path.realpath(other) != PYTHON and Path(other).exists():
        assert checkout.install(*make(), PATH="/usr/bin:/bin")[::2] == (0, 0)
    checkout.calls.unlink(missing_ok=True)
    done = checkout.start("make", "-C", str(checkout.folder), "--silent", "install")
    assert (done.wait(60), checkout.calls.exists()) == (0, False)


def test_an_activated_venv_is_not_the_base_of_the_next_one(checkout):
    venv = checkout.folder / ".venv"
    for name in ("python3", f"python3.{sys.version_info[1]}"):
        (venv / "bin" / name).symlink_to("python")
    before = checkout.stamp()["interpreter"]
    checkout.change()
    paths = f"{venv / 'bin'}:{checkout.path}"
    assert checkout.install(*make(), PATH=paths, VIRTUAL_ENV=str(venv))[::2] == (0, len(STEPS))
    assert checkout.stamp()["interpreter"] == before
    assert checkout.works()


def test_a_moved_checkout_is_installed_again_because_scripts_contain_its_path(checkout):
    assert str(checkout.folder) in (checkout.folder / ".venv/bin/program").read_text()
    assert ".new" not in (checkout.folder / ".venv/bin/activate").read_text()
    checkout.folder = checkout.folder.rename(checkout.folder.with_name("moved"))
    assert not checkout.works()
    checkout.calls = checkout.folder / "calls"
    assert checkout.install()[::2] == (0, len(STEPS))
    assert checkout.works()


def test_a_python_that_is_missing_is_named(checkout):
    code, output, calls = checkout.install(*make("PYTHON=/removed/python3"))
    assert (code, calls) == (2, 0)
    assert output.startswith("/removed/python3: not installed; install Python 3")
    # An interpreter of .venv that was removed.
    (checkout.folder / ".venv/bin/python").unlink()
    (checkout.folder / ".venv/bin/python").symlink_to("/removed/python3")
    assert checkout.install()[::2] == (0, len(STEPS))
    assert checkout.works()


@pytest.mark.slow
def test_the_environment_of_a_tool_is_replaced_only_by_a_finished_one(checkout):
    command = (sys.executable, "-m", "tools.environment", ".cache/mlflow", "requirements/docs.txt")
    folder = checkout.folder / ".cache" / "mlflow"
    assert checkout.install(*command)[::2] == (0, 2)
    assert checkout.install(*command)[::2] == (0, 0)
    before = environment.read_stamp(folder)
    assert before
    (checkout.folder / "requirements" / "docs.txt").write_text("mkdocs==2\n")
    code, output, _ = checkout.install(*command, FAIL="-r")
    assert code == 1 and "no network" in output
    assert environment.read_stamp(folder) == before
    assert (folder / "bin" / "program").exists() and not folder.with_name("mlflow.new").exists()
    assert checkout.install(*command)[::2] == (0, 2)
    assert environment.read_stamp(folder) != before


def test_an_environment_without_its_interpreter_or_its_stamp_counts_as_absent(tmp_path):
    python, stamp = tmp_path / "bin" / "python", tmp_path / environment.STAMP
    python.parent.mkdir()
    python.touch()
    assert environment.read_stamp(tmp_path) == {}
    for text, found in (("{", {}), (json.dumps({"digest": "d"}), {"digest": "d"})):
        stamp.write_text(text)
        assert environment.read_stamp(tmp_path) == found
    python.unlink()
    python.symlink_to(tmp_path / "removed")
    assert environment.read_stamp(tmp_path) == {}
