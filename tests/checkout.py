"""A copy of the sources that a test may change."""

import shutil
import subprocess
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]


def copy_of_the_checkout(folder):
    """Copy the files that git knows or would add to `folder`."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=CHECKOUT,
        capture_output=True,
        check=True,
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (CHECKOUT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(CHECKOUT / name, folder / name)
    return folder
