"""Install the stack of libraries that this machine supports into .venv, unless it is current.

`make install` runs `python3 -m tools.install`. The module uses only the standard library of Python
3.8, because it runs before any installation. It chooses the newer of two stacks if the glibc of
this machine can load its wheels, and prefers an interpreter that is already installed. An installed
.venv keeps its interpreter, even if another `python3` runs this module. With `--with-this-python`
the running interpreter is chosen instead, if a stack supports it.

Exit codes: 0 ready, 1 the installation failed, 2 this machine lacks a requirement (see stderr), 130
interrupted. After a failure or an interruption, the earlier .venv is unchanged.
"""

from __future__ import annotations

import glob
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import NamedTuple

from tools.environment import (
    ROOT,
    UV_REQUIREMENTS,
    InstallFailed,
    ensure_uv,
    environment_digest,
    exit_code,
    locked,
    pip_settings,
    read_stamp,
    recover,
    replacement,
    run,
    uv,
    uv_environment,
)

VENV = ROOT / ".venv"
WITH_THIS_PYTHON = "--with-this-python"


class Stack(NamedTuple):
    tfx: str
    minors: tuple[int, ...]  # the minor versions of Python 3, beginning with the preferred one
    glibc: tuple[int, int]  # the oldest version that the wheels support
    requirements: str


NEW = Stack("1.21", (13, 12, 11), (2, 39), "requirements/tfx-1.21-py311.txt")
OLD = Stack("1.16", (10,), (2, 28), "requirements/tfx-1.16-py310.txt")


class Interpreter(NamedTuple):
    path: str
    version: tuple[int, int, int]
    headers: bool  # Python.h is installed
    venv: bool  # venv and ensurepip are installed; Debian packages them separately
    standard: bool  # 64-bit CPython with the GIL, for which there are wheels
    conda: bool = False  # in an environment of conda


class Choice(NamedTuple):
    stack: Stack
    interpreter: Interpreter | None  # None: uv downloads one
    reason: str

    @property
    def python(self) -> str:
        """The path of the interpreter, or the version that uv downloads."""
        return self.interpreter.path if self.interpreter else f"3.{self.stack.minors[0]}"

    def __str__(self) -> str:
        if self.interpreter is None:
            python = f"Python 3.{self.stack.minors[0]}, which uv downloads"
        else:
            python = f"Python {_dotted(self.interpreter.version)}"
        return f"stack: tfx {self.stack.tfx} on {python} ({self.reason})"


class UnsuitableMachine(Exception):
    """A machine that does not support any stack now; the message contains the remedy."""


def main() -> int:
    try:
        return exit_code(lambda: install_if_necessary(WITH_THIS_PYTHON in sys.argv[1:]))
    except UnsuitableMachine as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def install_if_necessary(with_this_python: bool = False) -> None:
    """Install the stack unless .venv is current.

    Args:
      with_this_python: whether the running interpreter is preferred to that of .venv.

    Raises:
      InstallFailed: a step failed.
      UnsuitableMachine: the machine does not support any stack now.
    """
    if not with_this_python and is_current():
        return
    interpreters = find_interpreters(with_this_python)
    choice = choose(platform.system(), platform.machine(), _glibc_version(), interpreters)
    if is_current(choice):
        return
    _report(str(choice))
    installer = next((i for i in interpreters if i.venv), None)
    compilers = [*(os.environ.get("CXX") or "").split()[:1], "g++", "c++"]
    lacks = missing(choice, any(map(shutil.which, compilers)), installer)
    if lacks or installer is None:
        raise UnsuitableMachine(lacks)
    started = time.monotonic()
    with locked():
        recover(VENV)
        if is_current(choice if with_this_python else None):
            return  # Another process has installed it.
        install(choice, installer.path)
    _report(f"installed in {time.monotonic() - started:.0f} s")


def is_current(choice: Choice | None = None) -> bool:
    """Return whether .venv is finished and current.

    Args:
      choice: the stack and the Python that .venv must have; None: any of them.
    """
    stamp = read_stamp(VENV)
    if choice is not None and stamp.get("interpreter") != choice.python:
        return False
    return stamp.get("digest") == digest()


# Choosing ---------------------------------------------------------------------------------


def choose(
    system: str, machine: str, glibc: tuple[int, int] | None, interpreters: Sequence[Interpreter]
) -> Choice:
    """Return the newest stack that this machine supports, and an installed interpreter if possible.

    Args:
      system: the operating system, as `platform` returns it.
      machine: the architecture, as `platform` returns it.
      glibc: the version of glibc; None: another C library.
      interpreters: the installed interpreters, in the order of preference.

    Raises:
      UnsuitableMachine: TFX has no wheels for the machine.
    """
    problem = ""
    if system != "Linux":
        problem = f"TFX is released for Linux only, this is {system}"
    elif machine not in ("x86_64", "AMD64"):
        problem = f"TFX is released for x86_64 only, this is {machine}"
    elif glibc is None:
        problem = "TFX requires glibc, and this machine has another C library"
    elif glibc < OLD.glibc:
        problem = f"glibc {_dotted(glibc)} is older than {_dotted(OLD.glibc)}"
    if problem or glibc is None:
        remedy = "use a Linux machine, or a container of Debian 13 or Ubuntu 24.04"
        raise UnsuitableMachine(f"{problem}: {remedy}")

    found = f"glibc {_dotted(glibc)}"
    stacks = [stack for stack in (NEW, OLD) if glibc >= stack.glibc]
    reasons = {NEW: f"{found} is recent enough for tfx {NEW.tfx}"}
    reasons[OLD] = f"no Python 3.{NEW.minors[-1]} to 3.{NEW.minors[0]} for tfx {NEW.tfx} was found"
    if NEW not in stacks:
        required = f"{_dotted(NEW.glibc)}, which tfx {NEW.tfx} requires"
        reasons[OLD] = f"{found} is older than {required}"
    for stack in stacks:
        minors = [(3, minor) for minor in stack.minors]
        fits = [i for i in interpreters if i.standard and i.version[:2] in minors]
        # An interpreter with headers is preferred, because the user need not install them.
        for interpreter in sorted(fits, key=lambda i: not i.headers):
            return Choice(stack, interpreter, reasons[stack])
    return Choice(stacks[0], None, reasons[stacks[0]])


def missing(choice: Choice, compiler: bool, installer: Interpreter | None) -> str:
    """Return a message with every Debian package to install; empty if nothing is missing.

    Args:
      choice: the stack and its interpreter.
      compiler: whether a C++ compiler is installed.
      installer: the interpreter that installs uv; None: no interpreter can.
    """
    lacks: list[tuple[str, str]] = []
    if installer is None:
        lacks.append(("Python's venv and ensurepip modules", "python3-venv"))
    if not compiler:
        lacks.append(("a C++ compiler, because pyfarmhash is built from source", "g++"))
    if choice.interpreter is not None and not choice.interpreter.headers:
        path, version, *_ = choice.interpreter
        # The package of the default Python has no version in its name.
        default = path == os.path.realpath("/usr/bin/python3")
        package = "python3-dev" if default else f"python{_dotted(version[:2])}-dev"
        lacks.append((f"Python.h for {path}", package))
    if not lacks:
        return ""
    lines = ["The installation requires software that this machine lacks:"]
    lines += [f"  {what} (package {package})" for what, package in lacks]
    packages = " ".join(package for _, package in lacks)
    lines.append(f"Install it as root: apt-get install {packages}")
    return "\n".join(lines)


def find_interpreters(with_this_python: bool = True) -> list[Interpreter]:
    """Return the installed interpreters in the order of preference.

    The order is: the interpreter of .venv, the running one, those of pyenv, and those on PATH,
    newer ones first. In place of a virtual environment, the list has the interpreter from which it
    was created. Interpreters of conda are last, because users update and remove them.

    Args:
      with_this_python: whether the running interpreter is always first, even one of conda.
    """
    paths = [] if with_this_python else [read_stamp(VENV).get("interpreter", "")]
    paths.append(sys.executable)
    pyenvs = dict.fromkeys([os.environ.get("PYENV_ROOT"), os.path.expanduser("~/.pyenv")])
    for minor in (*NEW.minors, *OLD.minors):
        for pyenv in filter(None, pyenvs):
            paths += sorted(glob.glob(f"{pyenv}/versions/3.{minor}.*/bin/python"), reverse=True)
        on_path = shutil.which(f"python3.{minor}")
        paths += [on_path] if on_path else []
    found = (probe(path) for path in dict.fromkeys(filter(None, paths)))
    interpreters = list({i.path: i for i in found if i is not None}.values())
    first = interpreters[:1] if with_this_python else []
    return sorted(interpreters, key=lambda i: i.conda and i not in first)


# This runs in each interpreter, because a pyenv shim exists but may fail when it is executed.
_PROBE = """
import importlib.util as u, json, os, sys, sysconfig
# In a virtual environment, the interpreter that it was created from.
base = os.path.join(sys.base_prefix, "bin", "python%d.%d" % sys.version_info[:2])
in_venv = sys.prefix != sys.base_prefix and os.path.exists(base)
print(json.dumps(dict(
    path=os.path.realpath(base if in_venv else sys.executable),
    conda=os.path.isdir(os.path.join(sys.base_prefix, "conda-meta")),
    version=sys.version_info[:3],
    headers=os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")),
    venv=u.find_spec("venv") is not None and u.find_spec("ensurepip") is not None,
    standard=sys.implementation.name == "cpython" and sys.maxsize > 2**32
        and not sysconfig.get_config_var("Py_GIL_DISABLED"))))
"""


def probe(path: str) -> Interpreter | None:
    """Return the properties of an interpreter; None if it does not run."""
    try:
        # -I: the working folder and PYTHONPATH do not affect the result.
        done = subprocess.run([path, "-I", "-c", _PROBE], capture_output=True, timeout=30)
        found = json.loads(done.stdout)
        found["version"] = tuple(found["version"])
        return Interpreter(**found)
    except (OSError, ValueError, TypeError, subprocess.TimeoutExpired):
        return None


def _glibc_version() -> tuple[int, int] | None:
    try:
        name, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").split()
        major, minor = version.split(".")[:2]
    except (AttributeError, OSError, ValueError):
        return None
    return (int(major), int(minor)) if name == "glibc" else None


def _dotted(version: Sequence[int]) -> str:
    return ".".join(map(str, version))


# Installing -------------------------------------------------------------------------------


def install(choice: Choice, installer: str) -> None:
    """Install the stack and this project into a new environment, and replace .venv with it.

    Args:
      choice: the stack and its interpreter.
      installer: the path of the interpreter that installs uv.

    Raises:
      InstallFailed: a step failed.
    """
    ensure_uv(installer)
    env = uv_environment(os.environ, pip_settings())
    with replacement(VENV, digest=digest(), interpreter=choice.python) as new:
        _report(f"creating {VENV.name}")
        try:
            run([uv(), "venv", "--seed", "--python", choice.python, new], env)
        except InstallFailed as error:
            if choice.interpreter is None:
                hint = f"uv could not download Python {choice.python}"
                hint += "; install it, for example with pyenv"
                raise InstallFailed(f"{error}: {hint}") from error
            raise
        requirements = ROOT / choice.stack.requirements
        count = requirements.read_text(encoding="utf-8").count("==")
        _report(f"installing {count} packages (about 3 GB, some minutes if uv has not cached them)")
        # --no-deps: the file of requirements is complete, so uv does not have to resolve it again.
        into = [uv(), "pip", "install", "--no-deps", "--python", new / "bin" / "python"]
        # The hash of setuptools, which builds a package from source, is verified too.
        into += ["--build-constraints", requirements]
        # Compiled here on all cores. Otherwise each process compiles its imports, and with
        # PYTHONDONTWRITEBYTECODE every process compiles them again: 10 s for TensorFlow alone.
        run([*into, "--compile-bytecode", "--require-hashes", "-r", requirements], env)
        # compat: a plain path entry, which also finds package folders that are added later.
        run([*into, "--config-setting", "editable_mode=compat", "-e", ROOT], env)


def digest() -> str:
    """Return a hash of everything that determines the content of .venv, except the interpreter."""
    names = ["pyproject.toml", "setup.py", "tools/install.py", "tools/environment.py"]
    names += [NEW.requirements, OLD.requirements, UV_REQUIREMENTS]
    return environment_digest(VENV, _glibc_version(), *(ROOT / name for name in names))


def _report(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
