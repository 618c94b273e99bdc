"""Install the stack of libraries that this machine supports into .venv; instant if it is installed.

`make install` runs `python3 -m tools.install`. The module uses only the standard library of Python
3.8, because it runs before any installation. It chooses the newest of two stacks whose wheels the
glibc of this machine can load, with an interpreter that is installed already if there is one.

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
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
STAMP = VENV / "installed.json"
# uv and the log are outside .venv, so that they survive a new .venv.
CACHE = ROOT / ".cache"
LOG = CACHE / "install.log"
UV = CACHE / "uv" / "bin" / "uv"
# Not the script `pip`, whose first line has the path of a checkout that was moved.
PIP = [str(UV.with_name("python")), "-m", "pip"]
UV_REQUIREMENTS = "requirements/uv.txt"
_LOG_LINES_SHOWN = 25


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
            python = f"Python {_dotted(self.interpreter.version)}"
        return f"stack: tfx {self.stack.tfx} on {python} ({self.reason})"


class UnsuitableMachine(Exception):
    """A machine that cannot run any stack now; the message contains the remedy."""


class InstallFailed(Exception):
    """A failed step of the installation; the log has its output."""


def main() -> int:
    try:
        install_if_necessary()
    except UnsuitableMachine as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except InstallFailed as error:
        lines = LOG.read_text(encoding="utf-8", errors="replace").splitlines()
        for line in lines[-_LOG_LINES_SHOWN:]:
            print(f"  {line}", file=sys.stderr)
        print(f"error: {error}; see the complete output in {LOG}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; repeat the command to continue", file=sys.stderr)
        return 130
    return 0


def install_if_necessary() -> None:
    if read_stamp().get("digest") == digest():
        return
    interpreters = find_interpreters()
    choice = choose(platform.system(), platform.machine(), _glibc_version(), interpreters)
    _report(str(choice))
    installer = next((i for i in interpreters if i.venv), None)
    compilers = [*(os.environ.get("CXX") or "").split()[:1], "g++", "c++"]
    lacks = missing(choice, any(map(shutil.which, compilers)), installer)
    if lacks or installer is None:
        raise UnsuitableMachine(lacks)
    import fcntl  # Not at the top, so that `choose` can report that Windows is not supported.

    started = time.monotonic()
    CACHE.mkdir(exist_ok=True)
    with (CACHE / "install.lock").open("w", encoding="utf-8") as lock:
        # Only one installation at a time. A command that outlives a killed one keeps the lock.
        os.set_inheritable(lock.fileno(), True)
        fcntl.flock(lock, fcntl.LOCK_EX)
        if read_stamp().get("digest") == digest():  # another process has installed it
            return
        LOG.write_text("", encoding="utf-8")
        install(choice, installer.path)
    _report(f"installed in {time.monotonic() - started:.0f} s")


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

    `installer` is the interpreter that installs uv, if one can.
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


def find_interpreters() -> list[Interpreter]:
    """Return the running interpreter, then those of pyenv and on PATH, the newer ones first."""
    # Resolved, because an activated .venv is a link to the interpreter that it was created from.
    paths = [os.path.realpath(sys.executable)]
    pyenvs = dict.fromkeys([os.environ.get("PYENV_ROOT"), os.path.expanduser("~/.pyenv")])
    for minor in (*NEW.minors, *OLD.minors):
        for pyenv in filter(None, pyenvs):
            paths += sorted(glob.glob(f"{pyenv}/versions/3.{minor}.*/bin/python"), reverse=True)
        on_path = shutil.which(f"python3.{minor}")
        paths += [on_path] if on_path else []
    found = (probe(path) for path in dict.fromkeys(paths))
    return list({i.path: i for i in found if i is not None}.values())


# This runs in each interpreter, because a pyenv shim exists but may fail when it is executed.
_PROBE = """
import importlib.util as u, json, os, sys, sysconfig
print(json.dumps(dict(
    path=os.path.realpath(sys.executable), version=sys.version_info[:3],
    headers=os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")),
    venv=u.find_spec("venv") is not None and u.find_spec("ensurepip") is not None,
    standard=sys.implementation.name == "cpython" and sys.maxsize > 2**32
        and not sysconfig.get_config_var("Py_GIL_DISABLED"))))
"""


def probe(path: str) -> Interpreter | None:
    """Return what an interpreter has; None if it does not run."""
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
    """Create .venv if necessary, and install the stack and this project into it.

    Raises:
      InstallFailed: a step failed.
    """
    ensure_uv(installer)
    listing = subprocess.run([*PIP, "config", "list"], stdout=subprocess.PIPE).stdout.decode()
    env = uv_environment(os.environ, listing)
    python = choice.interpreter.path if choice.interpreter else f"3.{choice.stack.minors[0]}"
    if read_stamp().get("interpreter") == python:
        # Removed until the end of the installation. After an interruption the next call creates a
        # new .venv, because a package may be incomplete without any sign of it.
        STAMP.unlink()
    else:
        _report("creating .venv")
        try:
            run([UV, "venv", "--clear", "--seed", "--python", python, VENV], env)
        except InstallFailed as error:
            if choice.interpreter is None:
                hint = f"uv could not download Python {python}; install it, for example with pyenv"
                raise InstallFailed(f"{error}: {hint}") from error
            raise
    requirements = ROOT / choice.stack.requirements
    count = requirements.read_text(encoding="utf-8").count("==")
    _report(f"installing {count} packages (about 3 GB, some minutes if uv has not cached them)")
    # --no-deps: the file of requirements is complete, so uv does not have to resolve it again.
    into = [UV, "pip", "install", "--no-deps", "--python", VENV / "bin" / "python"]
    # The hash of what builds a package from source, setuptools, is verified too.
    into += ["--build-constraints", requirements]
    # Compiled here on all cores. Otherwise each process compiles its imports, and with
    # PYTHONDONTWRITEBYTECODE every process compiles them again: 10 s for TensorFlow alone.
    run([*into, "--compile-bytecode", "--require-hashes", "-r", requirements], env)
    # compat: a plain path entry, which also finds package folders that are added later.
    run([*into, "--config-setting", "editable_mode=compat", "-e", ROOT], env)
    STAMP.write_text(json.dumps({"digest": digest(), "interpreter": python}), encoding="utf-8")


def ensure_uv(python: str) -> None:
    """Install the pinned uv with an interpreter if it is missing."""
    with contextlib.suppress(OSError):
        version = subprocess.run([str(UV), "--version"], stdout=subprocess.PIPE).stdout.decode()
        if version.split()[1:2] == [uv_version()] and shutil.which(PIP[0]):
            return
    _report(f"installing uv {uv_version()}, which installs the packages")
    run([python, "-m", "venv", "--clear", UV.parent.parent])
    run([*PIP, "install", "--require-hashes", "-r", ROOT / UV_REQUIREMENTS])


def uv_version() -> str:
    """Return the pinned version of uv."""
    pin = (ROOT / UV_REQUIREMENTS).read_text(encoding="utf-8").split()[0]
    return pin.partition("==")[2]


def uv_environment(environ: Mapping[str, str], listing: str) -> dict[str, str]:
    """Return an environment in which uv uses pip's settings, unless it has settings of its own.

    Args:
      environ: the present environment.
      listing: what `pip config list` printed. The environment overrides the section `install`,
        which overrides `global`.
    """
    pip: dict[str, str] = {}
    for section in ("global.", "install.", ":env:."):
        for line in listing.splitlines():
            key, _, value = line.partition("=")
            if key.startswith(section):
                pip[key[len(section) :]] = value.strip("'\"")
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


def run(command: Sequence[object], env: Mapping[str, str] | None = None) -> None:
    """Run a command with its output in the log.

    Raises:
      InstallFailed: the command failed.
    """
    words = [str(word) for word in command]
    with LOG.open("a", encoding="utf-8") as log:
        log.write("$ " + " ".join(words) + "\n")
        log.flush()
        # close_fds: a command that outlives a killed installation keeps the lock.
        done = subprocess.run(
            words, stdout=log, stderr=subprocess.STDOUT, env=env, cwd=ROOT, close_fds=False
        )
    if done.returncode:
        raise InstallFailed(f"{Path(words[0]).name} failed with exit code {done.returncode}")


def digest() -> str:
    """Return a hash of everything that determines the content of .venv."""
    hashed = hashlib.sha256()
    for fact in (os.path.realpath(sys.executable), sys.version, _glibc_version()):
        hashed.update(repr(fact).encode())
    names = ["pyproject.toml", "setup.py", "tools/install.py"]
    for name in (*names, NEW.requirements, OLD.requirements, UV_REQUIREMENTS):
        hashed.update((ROOT / name).read_bytes())
    return hashed.hexdigest()


def read_stamp() -> dict[str, str]:
    """Return the stamp of the last installation; empty if .venv is missing or incomplete."""
    with contextlib.suppress(OSError, ValueError):
        if (VENV / "bin" / "python").exists():  # False if its interpreter was removed
            stamp: dict[str, str] = json.loads(STAMP.read_text(encoding="utf-8"))
            return stamp
    return {}


def _report(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
