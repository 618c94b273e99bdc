"""The addresses of this user's running servers, so that `predict` finds a server on any port.

Each server has a file in a folder that only this user can write to. This module imports the
standard library only, because the import of TensorFlow takes seconds.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from core.storage import is_url


@contextlib.contextmanager
def announced(address: str, folder: str) -> Iterator[None]:
    """Announce a server until the end of the context.

    An error is ignored: without the announcement `predict` loads the model itself.

    Args:
      address: the URL of the server.
      folder: the serving folder or its URL.
    """
    file = None
    with contextlib.suppress(OSError):
        registry = _registry()
        registry.mkdir(mode=0o700, exist_ok=True)
        if _is_ours(registry):
            file = registry / f"{folder_id(folder)}.{os.getpid()}"
            file.write_text(address, encoding="utf-8")
    try:
        yield
    finally:
        if file is not None:
            with contextlib.suppress(OSError):
                file.unlink()


def addresses(folder: str) -> list[str]:
    """Return the URLs of the running servers that are announced for a serving folder.

    Args:
      folder: the serving folder or its URL.
    """
    found = []
    with contextlib.suppress(OSError):
        if _is_ours(_registry()):
            for file in sorted(_registry().glob(f"{folder_id(folder)}.*")):
                if not file.suffix[1:].isdecimal():
                    continue
                if _runs(int(file.suffix[1:])):
                    found.append(file.read_text(encoding="utf-8"))
                else:
                    file.unlink()  # The server was killed.
    return found


def folder_id(folder: str) -> str:
    """Return a digest of the path of a serving folder, which does not reveal the path.

    Args:
      folder: the serving folder or its URL.

    Returns:
      32 hexadecimal digits.
    """
    path = folder.rstrip("/") if is_url(folder) else os.path.realpath(folder)
    return hashlib.sha256(path.encode("utf-8", "surrogateescape")).hexdigest()[:32]


def _registry() -> Path:
    return Path(tempfile.gettempdir()) / f"amazon-reviews-{os.getuid()}"


def _is_ours(registry: Path) -> bool:
    """Return whether only this user can write to the folder.

    Another user could announce a server there, which would receive the reviews.
    """
    status = os.lstat(registry)
    is_private = not status.st_mode & (stat.S_IRWXG | stat.S_IRWXO)
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and is_private


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # The process of another user.
    return True
