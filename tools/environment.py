"""Virtual environments with pinned packages. An environment is replaced only by a finished one.

    python3 -m tools.environment FOLDER REQUIREMENTS

creates the environment FOLDER from a file of pins with hashes. It returns at once if FOLDER is
current. The Makefile creates the environments of its tools in this way, and `tools.install` creates
the environment of the project. This module uses only the standard library of Python 3.8, because it
runs before any installation.

Exit codes: 0 ready, 1 the installation failed, 130 interrupted.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# uv and the log are outside .venv, so that they survive a new .venv.
CACHE = ROOT / ".cache"
LOG = CACHE / "install.log"
UV_VENV = CACHE / "uv"
UV_REQUIREMENTS = "requirements/uv.txt"
STAMP = "installed.json"
_LOG_LINES_SHOWN = 25
# The variables of an activated environment, into which uv must not install.
_ACTIVATED = ("VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONHOME", "UV_SYSTEM_PYTHON")


class InstallFailed(Exception):
    """A failed step of the installation; the log contains its output."""


def main() -> int:
    folder, requirements = sys.argv[1:]
    return exit_code(lambda: install_pins(ROOT / folder, ROOT / requirements))


def exit_code(work: Callable[[], None]) -> int:
    """Call a function that installs; print the error if it fails, and return the exit code.

    Args:
      work: the function. An InstallFailed, OSError or KeyboardInterrupt does not pass through.
    """
    try:
        work()
    except InstallFailed as error:
        lines = LOG.read_text(encoding="utf-8", errors="replace").splitlines()
        for line in lines[-_LOG_LINES_SHOWN:]:
            print(f"  {line}", file=sys.stderr)
        print(f"error: {error}; see the complete output in {LOG}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"error: the installation failed: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; repeat the command to install", file=sys.stderr)
        return 130
    return 0


def install_pins(folder: Path, requirements: Path) -> None:
    """Create the environment `folder` with the packages of a file of pins, unless it is current.

    Its interpreter is the running one, or the one from which the running environment was created.

    Args:
      folder: the environment.
      requirements: the file of pins, with hashes.

    Raises:
      InstallFailed: a step failed. An earlier environment is unchanged.
    """
    digest = environment_digest(folder, sys.base_prefix, sys.version, requirements)
    if read_stamp(folder).get("digest") == digest:
        return
    with locked():
        recover(folder)
        if read_stamp(folder).get("digest") == digest:
            return
        ensure_uv(sys.executable)
        env = uv_environment(os.environ, pip_settings())
        with replacement(folder, digest=digest) as new:
            run([uv(), "venv", "--python", sys.executable, new], env)
            into = [uv(), "pip", "install", "--python", new / "bin" / "python"]
            run([*into, "--require-hashes", "-r", requirements], env)


# Stamps -----------------------------------------------------------------------------------


def environment_digest(folder: Path, *contents: object) -> str:
    """Return a hash of everything that determines an environment.

    Args:
      folder: the environment. Its scripts contain its path, so a moved environment is not current.
      contents: the paths of files, whose contents are hashed, and other values.

    Raises:
      OSError: a file cannot be read.
    """
    hashed = hashlib.sha256(repr(str(folder)).encode())
    for content in contents:
        if isinstance(content, Path):
            hashed.update(content.read_bytes())
        else:
            hashed.update(repr(content).encode())
    return hashed.hexdigest()


def read_stamp(folder: Path) -> dict[str, str]:
    """Return the stamp of a finished environment; empty if it is missing or incomplete."""
    with contextlib.suppress(OSError, ValueError):
        if (folder / "bin" / "python").exists():  # False if its interpreter was removed
            stamp: dict[str, str] = json.loads((folder / STAMP).read_text(encoding="utf-8"))
            return stamp
    return {}


# Replacing --------------------------------------------------------------------------------


@contextlib.contextmanager
def locked() -> Iterator[None]:
    """Hold the lock of the installation; wait until no other process holds it.

    If this process is killed, a command that it started keeps the lock until the command ends.
    """
    import fcntl  # Not at the top, so that `tools.install` can report that Windows is unsuitable.

    CACHE.mkdir(exist_ok=True)
    with (CACHE / "install.lock").open("w", encoding="utf-8") as lock:
        os.set_inheritable(lock.fileno(), True)
        fcntl.flock(lock, fcntl.LOCK_EX)
        LOG.write_text("", encoding="utf-8")
        yield


@contextlib.contextmanager
def replacement(folder: Path, **stamp: str) -> Iterator[Path]:
    """Yield the path of a new environment, which replaces `folder` at the end of the context.

    After an error `folder` is unchanged. If the process is killed between the two renames, the
    finished environment is next to `folder`, and `recover` renames it.

    Args:
      folder: the environment.
      stamp: the keys and values of the stamp, see `read_stamp`.
    """
    new, old = _new(folder), _old(folder)
    _remove(new)
    try:
        yield new
        _move_paths(new, folder)
        (new / STAMP).write_text(json.dumps(stamp), encoding="utf-8")
    except BaseException:
        _remove(new)
        raise
    _remove(old)
    if os.path.lexists(_real_path(folder)):
        os.rename(_real_path(folder), old)
    os.rename(new, _real_path(folder))
    _remove(old)


def recover(folder: Path) -> None:
    """Finish a replacement if the process was killed between its renames."""
    if not os.path.lexists(_real_path(folder)):
        for rest in (_new(folder), _old(folder)):
            if read_stamp(rest):
                os.rename(rest, _real_path(folder))
                return


def _real_path(folder: Path) -> Path:
    """Return the path of a folder without symbolic links, because it may be on another disk."""
    return Path(os.path.realpath(folder))


def _new(folder: Path) -> Path:
    path = _real_path(folder)
    return path.with_name(f"{path.name}.new")


def _old(folder: Path) -> Path:
    path = _real_path(folder)
    return path.with_name(f"{path.name}.old")


def _remove(folder: Path) -> None:
    # The stamp is removed first, so that an interrupted removal leaves no finished environment.
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        (folder / STAMP).unlink()
    if folder.is_dir() and not folder.is_symlink():
        shutil.rmtree(folder)


def _move_paths(new: Path, folder: Path) -> None:
    """Replace the path of a new environment in its scripts by the path to which it is renamed.

    Modules need no change: Python sets the path of a compiled module when it loads it.
    """
    for script in (new / "bin").iterdir():
        if script.is_symlink() or not script.is_file():
            continue
        content = script.read_bytes()
        # Binaries may be hard links to the files in the cache of uv. They contain no path.
        if os.fsencode(new) not in content or b"\0" in content:
            continue
        moved = script.with_name(f"{script.name}.moved")
        moved.write_bytes(content.replace(os.fsencode(new), os.fsencode(folder)))
        shutil.copymode(script, moved)
        os.replace(moved, script)


# uv ---------------------------------------------------------------------------------------


def uv() -> Path:
    """Return the path of uv."""
    return UV_VENV / "bin" / "uv"


def pip(venv: Path) -> list[str]:
    """Return the command that runs the pip of an environment.

    The script `pip` is not used, because its first line is wrong if the checkout was moved.
    """
    return [str(venv / "bin" / "python"), "-m", "pip"]


def ensure_uv(python: str) -> None:
    """Install the pinned uv with an interpreter if it is missing.

    Raises:
      InstallFailed: a step failed. An installed uv of another version is kept.
    """
    recover(UV_VENV)
    with contextlib.suppress(OSError):
        version = subprocess.run([str(uv()), "--version"], stdout=subprocess.PIPE).stdout.decode()
        if version.split()[1:2] == [uv_version()] and shutil.which(pip(UV_VENV)[0]):
            return
    print(f"installing uv {uv_version()}, which installs the packages", flush=True)
    with replacement(UV_VENV, digest=uv_version()) as new:
        run([python, "-m", "venv", new])
        run([*pip(new), "install", "--require-hashes", "-r", ROOT / UV_REQUIREMENTS])


def uv_version() -> str:
    """Return the pinned version of uv."""
    pin = (ROOT / UV_REQUIREMENTS).read_text(encoding="utf-8").split()[0]
    return pin.partition("==")[2]


def pip_settings() -> str:
    """Return the output of `pip config list`."""
    command = [*pip(UV_VENV), "config", "list"]
    return subprocess.run(command, stdout=subprocess.PIPE).stdout.decode()


def uv_environment(environ: Mapping[str, str], listing: str) -> dict[str, str]:
    """Return an environment in which uv uses pip's settings, unless it has settings of its own.

    Args:
      environ: the environment variables of this process.
      listing: the output of `pip config list`. Its entries of the environment override those of the
        section `install`, which override those of `global`.
    """
    settings: dict[str, str] = {}
    for section in ("global.", "install.", ":env:."):
        for line in listing.splitlines():
            key, _, value = line.partition("=")
            if key.startswith(section):
                settings[key[len(section) :]] = value.strip("'\"")
    env = {key: value for key, value in environ.items() if key not in _ACTIVATED}
    if "index-url" in settings and "UV_INDEX_URL" not in env:
        env.setdefault("UV_DEFAULT_INDEX", settings["index-url"])
    if "extra-index-url" in settings and "UV_INDEX" not in env:
        env.setdefault("UV_EXTRA_INDEX_URL", " ".join(settings["extra-index-url"].split("\\n")))
    if "cert" in settings:
        env.setdefault("SSL_CERT_FILE", settings["cert"])
    # Without it uv uses only its built-in certificates.
    env.setdefault("UV_SYSTEM_CERTS", "true")
    env.setdefault(
        "UV_HTTP_TIMEOUT", settings.get("default-timeout", settings.get("timeout", "300"))
    )
    return env


def run(command: Sequence[object], env: Mapping[str, str] | None = None) -> None:
    """Run a command with its output in the log.

    Args:
      command: the program and its arguments.
      env: its environment variables; None: those of this process.

    Raises:
      InstallFailed: the command failed.
    """
    words = [str(word) for word in command]
    with LOG.open("a", encoding="utf-8") as log:
        log.write("$ " + " ".join(words) + "\n")
        log.flush()
        # close_fds: the command inherits the lock, and keeps it if this process is killed.
        done = subprocess.run(
            words, stdout=log, stderr=subprocess.STDOUT, env=env, cwd=ROOT, close_fds=False
        )
    if done.returncode:
        raise InstallFailed(f"{Path(words[0]).name} failed with exit code {done.returncode}")


if __name__ == "__main__":
    sys.exit(main())
