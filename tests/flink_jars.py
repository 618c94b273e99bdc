"""The jars of `make flink`, for tests in several processes."""

import fcntl
import subprocess
from pathlib import Path


def make_flink(checkout: Path, *variables: str, **options) -> Path:
    """Run `make flink`; return the folder of the jars.

    Of several processes that call this at the same time one downloads, and the others wait.

    Args:
      checkout: the folder that `make` runs in.
      variables: variables of the Makefile.
      options: those of `subprocess.run`.
    """
    cache = checkout / ".cache"
    cache.mkdir(exist_ok=True)
    with (cache / "flink.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        command = ["make", "--silent", "-C", str(checkout), *variables, "flink"]
        subprocess.run(command, check=True, **options)
    return cache / "flink" / "lib"
