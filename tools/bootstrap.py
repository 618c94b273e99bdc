"""Set up .venv: choose the stack that this machine supports, and install it if necessary.

`make install` runs `python3 -m tools.bootstrap`. It uses only the standard library of Python 3.8,
because it runs before any installation. Exit codes: 0 ready, 1 the installation failed, 2 this
machine lacks something (see stderr).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

from tools.stacks import (
    NEW,
    OLD,
    Choice,
    Interpreter,
    UnsuitableMachine,
    choose,
    find_interpreters,
    glibc_version,
    has_compiler,
    missing,
)

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
STAMP = VENV / "installed.json"
# uv and the log are outside .venv, so that they survive a new .venv.
CACHE = ROOT / ".cache"
LOG = CACHE / "install.log"
UV = CACHE / "uv" / "bin" / "uv"
UV_REQUIREMENTS = "requirements/uv.txt"
LOG_LINES_SHOWN = 25


class InstallFailed(Exception):
    """A failed step of the installation; the log has its output."""


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


def uv_version() -> str:
    """Return the pinned version of uv."""
    pin = (ROOT / UV_REQUIREMENTS).read_text(encoding="utf-8").split()[0]
    return pin.partition("==")[2]


def ensure_uv(installer: Interpreter) -> list[str]:
    """Install the pinned uv if it is missing; return the pip command for it."""
    private = [str(UV.parent / "python"), "-m", "pip"]
    pip = private if installer.venv else [installer.path, "-m", "pip"]
    with contextlib.suppress(OSError):
        version = subprocess.run([str(UV), "--version"], stdout=subprocess.PIPE).stdout.decode()
        if version.split()[1:2] == [uv_version()] and shutil.which(pip[0]):
            return pip
    report(f"installing uv {uv_version()}, which installs the packages")
    shutil.rmtree(UV.parent.parent, ignore_errors=True)
    if installer.venv:
        run([installer.path, "-m", "venv", UV.parent.parent])
    target = [] if installer.venv else ["--target", UV.parent.parent]
    run([*pip, "install", *target, "--require-hashes", "-r", ROOT / UV_REQUIREMENTS])
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
    count = requirements.read_text(encoding="utf-8").count("==")
    report(f"installing {count} packages (about 3 GB, some minutes if uv has not cached them)")
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


def digest() -> str:
    """Return a hash of everything that determines the content of .venv."""
    hashed = hashlib.sha256()
    for fact in (os.path.realpath(sys.executable), sys.version, glibc_version()):
        hashed.update(repr(fact).encode())
    names = ["pyproject.toml", "setup.py", "tools/bootstrap.py", "tools/stacks.py"]
    names += [NEW.requirements, OLD.requirements, UV_REQUIREMENTS]
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
