"""The stacks of libraries, and the choice of the one that this machine supports.

This module uses only the standard library of Python 3.8, because it runs before any installation.
"""

from __future__ import annotations

import glob
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Stack(NamedTuple):
    tfx: str
    minors: tuple[int, ...]  # of Python 3.x, the preferred one first
    glibc: tuple[int, int]  # the oldest version that its wheels support
    requirements: str


NEW = Stack("1.21", (13, 12, 11), (2, 39), "requirements/tfx-1.21-py311.txt")
OLD = Stack("1.16", (10,), (2, 28), "requirements/tfx-1.16-py310.txt")


class Interpreter(NamedTuple):
    path: str
    version: tuple[int, int, int]
    headers: bool  # Python.h is installed
    pip: bool
    venv: bool  # venv and ensurepip are installed; Debian packages them separately
    standard: bool  # 64-bit CPython with the GIL, for which there are wheels


class Choice(NamedTuple):
    stack: Stack
    interpreter: Interpreter | None  # None: uv downloads one
    reason: str

    def __str__(self) -> str:
        if self.interpreter is None:
            python = f"Python 3.{self.stack.minors[0]}, which uv downloads"
        else:
            python = "Python " + ".".join(map(str, self.interpreter.version))
        return f"stack: tfx {self.stack.tfx} on {python} ({self.reason})"


class UnsuitableMachine(Exception):
    """A machine that cannot run any stack now; the message contains the remedy."""


# Choosing ---------------------------------------------------------------------------------


def choose(
    system: str, machine: str, glibc: tuple[int, int] | None, interpreters: Sequence[Interpreter]
) -> Choice:
    """Return the newest stack that this machine supports, with an installed interpreter if any.

    Args:
      system, machine: as `platform` returns them.
      glibc: the version of glibc; None: another C library.
      interpreters: the installed interpreters, in the order of preference.

    Raises:
      UnsuitableMachine: TFX has no wheels for the machine.
    """
    container = "use a Linux machine, or a container of Debian 13 or Ubuntu 24.04"
    if system != "Linux":
        raise UnsuitableMachine(f"TFX is released for Linux only, this is {system}: {container}")
    if machine not in ("x86_64", "AMD64"):
        raise UnsuitableMachine(f"TFX is released for x86_64 only, this is {machine}: {container}")
    if glibc is None:
        raise UnsuitableMachine(
            f"TFX requires glibc, and this machine has another C library: {container}"
        )
    if glibc < OLD.glibc:
        raise UnsuitableMachine(
            f"glibc {dotted(glibc)} is older than {dotted(OLD.glibc)}: {container}"
        )

    stacks = [stack for stack in (NEW, OLD) if glibc >= stack.glibc]
    for stack in stacks:
        fits = [i for i in interpreters if i.standard and supports(stack, i)]
        # An interpreter with headers is preferred, because the user need not install them.
        for interpreter in sorted(fits, key=lambda i: not i.headers):
            return Choice(stack, interpreter, reason(stack, glibc))
    return Choice(stacks[0], None, reason(stacks[0], glibc))


def supports(stack: Stack, interpreter: Interpreter) -> bool:
    return interpreter.version[0] == 3 and interpreter.version[1] in stack.minors


def reason(stack: Stack, glibc: tuple[int, int]) -> str:
    if stack is NEW:
        return f"glibc {dotted(glibc)} is recent enough for tfx {NEW.tfx}"
    if glibc < NEW.glibc:
        return (
            f"glibc {dotted(glibc)} is older than {dotted(NEW.glibc)}, which tfx {NEW.tfx} requires"
        )
    return f"no Python 3.{NEW.minors[-1]} to 3.{NEW.minors[0]} for tfx {NEW.tfx} was found"


def missing(
    choice: Choice, compiler: bool, installer: Interpreter | None, manager: str | None
) -> str:
    """Return a message with everything that has to be installed; empty if nothing is missing.

    Args:
      choice: the stack and its interpreter.
      compiler: whether there is a C++ compiler.
      installer: the interpreter that installs uv; None: none can.
      manager: apt-get, dnf or None.
    """
    lacks: list[tuple[str, str]] = []
    if installer is None:
        lacks.append(("Python's venv and ensurepip modules", "python3-venv"))
    if not compiler:
        lacks.append(("a C++ compiler, because pyfarmhash is built from source", "g++"))
    if choice.interpreter is not None and not choice.interpreter.headers:
        lacks.append((f"Python.h for {choice.interpreter.path}", dev_package(choice.interpreter)))
    if not lacks:
        return ""
    rpm = {"g++": "gcc-c++", "python3-venv": "python3-pip"}
    if manager == "dnf":
        lacks = [(what, rpm.get(p, p.replace("-dev", "-devel"))) for what, p in lacks]
    lines = ["The installation requires software that this machine lacks:"]
    lines += [f"  {what} (package {package})" for what, package in lacks]
    packages = " ".join(package for _, package in lacks)
    lines.append(f"Install it as root: {manager or 'apt-get'} install {packages}")
    return "\n".join(lines)


def dev_package(interpreter: Interpreter) -> str:
    """Return the package with the headers; its name has no version for the default Python."""
    if interpreter.path == os.path.realpath("/usr/bin/python3"):
        return "python3-dev"
    return "python{}.{}-dev".format(*interpreter.version)


def dotted(version: Iterable[int]) -> str:
    return ".".join(map(str, version))


# Examining the machine --------------------------------------------------------------------


def glibc_version() -> tuple[int, int] | None:
    try:
        name, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").split()
        major, minor = version.split(".")[:2]
    except (AttributeError, OSError, ValueError):
        return None
    return (int(major), int(minor)) if name == "glibc" else None


# This runs in each interpreter, because a pyenv shim exists but may fail when it is executed.
PROBE = """
import importlib.util as u, json, os, sys, sysconfig
print(json.dumps(dict(
    path=os.path.realpath(sys.executable), version=sys.version_info[:3],
    headers=os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")),
    pip=u.find_spec("pip") is not None,
    venv=u.find_spec("venv") is not None and u.find_spec("ensurepip") is not None,
    standard=sys.implementation.name == "cpython" and sys.maxsize > 2**32
        and not sysconfig.get_config_var("Py_GIL_DISABLED"))))
"""


def probe(path: str) -> Interpreter | None:
    try:
        # -I: the working folder and PYTHONPATH do not affect the result.
        done = subprocess.run(
            [path, "-I", "-c", PROBE], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=30
        )
        found = json.loads(done.stdout)
        found["version"] = tuple(found["version"])
        return Interpreter(**found)
    except (OSError, ValueError, TypeError, subprocess.TimeoutExpired):
        return None


def find_interpreters() -> list[Interpreter]:
    """Return the running interpreter, then those of pyenv and on PATH, the newer ones first."""
    minors = [minor for stack in (NEW, OLD) for minor in stack.minors]
    # Resolved, because an activated .venv is a link to the interpreter that it was created from.
    paths = [os.path.realpath(sys.executable)]
    pyenvs = dict.fromkeys([os.environ.get("PYENV_ROOT"), os.path.expanduser("~/.pyenv")])
    for minor in minors:
        for pyenv in filter(None, pyenvs):
            paths += sorted(glob.glob(f"{pyenv}/versions/3.{minor}.*/bin/python"), reverse=True)
        on_path = shutil.which(f"python3.{minor}")
        paths += [on_path] if on_path else []
    found = (probe(path) for path in dict.fromkeys(paths))
    return list({i.path: i for i in found if i is not None}.values())


def has_compiler() -> bool:
    own = (os.environ.get("CXX") or "").split()[:1]
    return any(shutil.which(name) for name in [*own, "g++", "c++"])
