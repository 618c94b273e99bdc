"""The lock between the runs on one machine, by flock: the kernel releases it when a process ends.

A run holds the lock of its local `paths.root`. `amazon-reviews run` acquires it and passes it to
the pipeline's process as an open descriptor. A run of the TFX command line acquires it itself.
"""

from __future__ import annotations

import fcntl
import os
import sys

from core.errors import ConfigError
from core.files import WITHOUT_LOCKS
from platforms.local.places import make_folder

DESCRIPTOR_VARIABLE = "PIPELINE_LOCK_FD"
_FILE = ".lock"


def lock_root(root: str) -> int | None:
    """Lock a local `paths.root` until this process and those that inherit the lock have ended.

    Returns:
      The descriptor of the lock. None if `root` is in a bucket. None and a warning on standard
      error if `root` is on a file system without locks.

    Raises:
      ConfigError: another run holds the lock.
    """
    inherited = os.environ.pop(DESCRIPTOR_VARIABLE, None)
    if inherited is not None:
        os.set_inheritable(int(inherited), False)
        return int(inherited)
    if "://" in root:
        return None
    make_folder("paths.root", root)
    path = os.path.join(root, _FILE)
    try:
        lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise ConfigError(f"paths.root: {path} cannot be written: {error.strerror}") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise ConfigError(
            f"paths.root: {root} is in use by another run; repeat the command after its end, or "
            "set another paths.root"
        ) from None
    except OSError as error:
        os.close(lock)
        if error.errno not in WITHOUT_LOCKS:
            raise
        print(
            f"paths.root: {root} cannot be locked ({error.strerror}); do not start a second run "
            "with it at the same time",
            file=sys.stderr,
        )
        return None
    return lock
