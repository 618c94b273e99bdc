#!/usr/bin/env python3
"""Set up .venv: choose the stack that this machine supports, and install it if necessary.

This script uses only the standard library of Python 3.8, because it runs before any installation.
Exit codes: 0 ready, 1 the installation failed, 2 this machine lacks something (see stderr).
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
STAMP = VENV / "installed.json"
# uv and the log are outside .venv, so that they survive a new .venv.
CACHE = ROOT / ".cache"
LOG = CACHE / "install.log"
UV = CACHE / "uv" / "bin" / "uv"
UV_VERSION = "0.13.9"
LOG_LINES_SHOWN = 25


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


class InstallFailed(Exception):
    """A failed step of the installation; the log has its output."""


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
        # An interpreter with headers first: the user need not install them.
        for interpreter in sorted(fits, key=lambda i: not i.headers):
            return Choice(stack, interpreter, reason(stack, glibc))
    return Choice(stacks[0], None, reason(stacks[0], glibc))


def supports(stack: Stack, interpreter: Interpreter) -> bool:
    return interpreter.version[0] == 3 and interpreter.version[1] in stack.minors


def reason(stack: Stack, glibc: tuple[int, int]) -> str:
    if stack is NEW:
        return f"glibc {dotted(glibc)} is recent enough for it"
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
    """Return the package with the headers, which has no version for the default Python."""
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


# Installing -------------------------------------------------------------------------------


def report(text: str) -> None:
    print(text, flush=True)


def run(command: Sequence[object], env: Mapping[str, str] | None = None) -> None:
    """Run a command with its output in the log.

    Raises:
      InstallFailed: the command failed.
    """
    words = [str(word) for word in command]
    with LOG.open("a", encoding="utf-8") as log:
        log.write("$ " + " ".join(words) + "\n")
        log.flush()
        # close_fds: a command that outlives a killed bootstrap keeps the lock of `exclusive`.
        done = subprocess.run(
            words, stdout=log, stderr=subprocess.STDOUT, env=env, cwd=ROOT, close_fds=False
        )
    if done.returncode:
        raise InstallFailed(f"{Path(words[0]).name} failed with exit code {done.returncode}")


def ensure_uv(installer: Interpreter) -> list[str]:
    """Install the pinned uv if it is missing; return the pip command for it."""
    private = [str(UV.parent / "python"), "-m", "pip"]
    pip = private if installer.venv else [installer.path, "-m", "pip"]
    with contextlib.suppress(OSError):
        version = subprocess.run([str(UV), "--version"], stdout=subprocess.PIPE).stdout.decode()
        if version.split()[1:2] == [UV_VERSION] and shutil.which(pip[0]):
            return pip
    report(f"installing uv {UV_VERSION}, which installs the packages")
    shutil.rmtree(UV.parent.parent, ignore_errors=True)
    if installer.venv:
        run([installer.path, "-m", "venv", UV.parent.parent])
        run([*pip, "install", f"uv=={UV_VERSION}"])
    else:
        run([*pip, "install", "--target", UV.parent.parent, f"uv=={UV_VERSION}"])
    return pip


def pip_settings(listing: str) -> dict[str, str]:
    """Return the settings that `pip config list` printed, without their sections.

    The environment overrides the section `install`, which overrides `global`.
    """
    settings: dict[str, str] = {}
    for section in ("global.", "install.", ":env:."):
        for line in listing.splitlines():
            key, _, value = line.partition("=")
            if key.startswith(section):
                settings[key[len(section) :]] = value.strip("'\"")
    return settings


def uv_environment(environ: Mapping[str, str], pip: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which uv uses pip's settings, unless it has settings of its own."""
    env = {key: value for key, value in environ.items() if key not in ("VIRTUAL_ENV", "PYTHONHOME")}
    if "index-url" in pip and "UV_INDEX_URL" not in env:
        env.setdefault("UV_DEFAULT_INDEX", pip["index-url"])
    if "extra-index-url" in pip and "UV_INDEX" not in env:
        env.setdefault("UV_EXTRA_INDEX_URL", " ".join(pip["extra-index-url"].split("\\n")))
    if "cert" in pip:
        env.setdefault("SSL_CERT_FILE", pip["cert"])
    # Without it uv uses only its built-in certificates.
    env.setdefault("UV_SYSTEM_CERTS", "true")
    env.setdefault("UV_HTTP_TIMEOUT", pip.get("default-timeout", pip.get("timeout", "300")))
    return env


def install(choice: Choice, installer: Interpreter) -> None:
    pip = ensure_uv(installer)
    listing = subprocess.run([*pip, "config", "list"], stdout=subprocess.PIPE).stdout.decode()
    env = uv_environment(os.environ, pip_settings(listing))
    python = choice.interpreter.path if choice.interpreter else f"3.{choice.stack.minors[0]}"
    if read_stamp().get("interpreter") == python:
        # Removed until the end of the installation. After an interruption the next call creates a
        # new .venv, because a package may be incomplete without any sign of it.
        STAMP.unlink()
    else:
        report("creating .venv")
        try:
            run([UV, "venv", "--clear", "--seed", "--python", python, VENV], env)
        except InstallFailed as error:
            if choice.interpreter is None:
                hint = f"uv could not download Python {python}; install it, for example with pyenv"
                raise InstallFailed(f"{error}: {hint}") from error
            raise
    requirements = ROOT / choice.stack.requirements
    count = len(requirements.read_text(encoding="utf-8").splitlines())
    report(f"installing {count} packages (about 3 GB, some minutes if uv has not cached them)")
    # Compiled here on all cores. Otherwise each process compiles its imports, and with
    # PYTHONDONTWRITEBYTECODE every process compiles them again: 10 s for TensorFlow alone.
    into = [UV, "pip", "install", "--compile-bytecode", "--python", VENV / "bin" / "python"]
    run([*into, "-r", requirements], env)
    # compat: a plain path entry, which also finds package folders that are added later.
    run([*into, "--no-deps", "--config-setting", "editable_mode=compat", "-e", ROOT], env)
    STAMP.write_text(json.dumps({"digest": digest(), "interpreter": python}), encoding="utf-8")


def digest() -> str:
    """Return a hash of everything that determines the content of .venv."""
    hashed = hashlib.sha256()
    for fact in (os.path.realpath(sys.executable), sys.version, glibc_version()):
        hashed.update(repr(fact).encode())
    names = ["pyproject.toml", "setup.py", "tools/bootstrap.py", NEW.requirements, OLD.requirements]
    for name in names:
        hashed.update((ROOT / name).read_bytes())
    return hashed.hexdigest()


def read_stamp() -> dict[str, str]:
    """Return the stamp of the last installation; empty if .venv is missing or incomplete."""
    with contextlib.suppress(OSError, ValueError):
        if (VENV / "bin" / "python").exists():  # False if its interpreter was removed
            stamp: dict[str, str] = json.loads(STAMP.read_text(encoding="utf-8"))
            return stamp
    return {}


@contextlib.contextmanager
def exclusive() -> Iterator[IO[str]]:
    """Delay a second installation into the same .venv, which `make -j` may start."""
    import fcntl  # Not at the top, so that `choose` can report that Windows is not supported.

    CACHE.mkdir(exist_ok=True)
    with (CACHE / "install.lock").open("w", encoding="utf-8") as lock:
        os.set_inheritable(lock.fileno(), True)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report("waiting for the end of another installation into .venv")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock


def bootstrap() -> None:
    if read_stamp().get("digest") == digest():
        return
    interpreters = find_interpreters()
    choice = choose(platform.system(), platform.machine(), glibc_version(), interpreters)
    report(str(choice))
    installer = next((i for i in interpreters if i.venv or i.pip), None)
    manager = next((name for name in ("apt-get", "dnf") if shutil.which(name)), None)
    lacks = missing(choice, has_compiler(), installer, manager)
    if lacks or installer is None:
        raise UnsuitableMachine(lacks)
    started = time.monotonic()
    with exclusive():
        if read_stamp().get("digest") == digest():  # another process has installed it
            return
        LOG.write_text("", encoding="utf-8")
        install(choice, installer)
    report(f"installed in {time.monotonic() - started:.0f} s")


def main() -> int:
    try:
        bootstrap()
    except UnsuitableMachine as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except InstallFailed as error:
        lines = LOG.read_text(encoding="utf-8", errors="replace").splitlines()
        for line in lines[-LOG_LINES_SHOWN:]:
            print(f"  {line}", file=sys.stderr)
        print(f"error: {error}; see the complete output in {LOG}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; repeat the command to continue", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
