"""Commands of a page of the documentation, as a reader calls them in one shell."""

import os
import re
import subprocess
import sys
from typing import NamedTuple

from tests.checkout import CHECKOUT

_BLOCK = re.compile(r"^```(\S*)[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_ACTIVATE = ". .venv/bin/activate\n"
_SEPARATOR = "--- block ---\n"
_STOP_JOBS = "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT"


class Page(NamedTuple):
    """The blocks of a page.

    Attributes:
      commands: the blocks with `sh`.
      outputs: the blocks that show what commands print.
    """

    commands: list[str]
    outputs: list[str]


def read_page(name: str) -> Page:
    """Return the blocks of a page below `docs/`."""
    text = (CHECKOUT / "docs" / name).read_text(encoding="utf-8")
    blocks = _BLOCK.findall(text)
    commands, outputs = ([block for kind, block in blocks if kind == of] for of in ("sh", ""))
    return Page(commands, outputs)


def run_blocks(blocks: list[str], home: os.PathLike[str]) -> list[str]:
    """Run blocks of commands one after the other in one shell; return what each one prints.

    The shell ends at the first command that fails, and stops what runs in the background.

    Args:
      blocks: the commands.
      home: the home of the reader.
    """
    # The environment is that of the tests, which need not be the .venv of the checkout.
    script = f"echo '{_SEPARATOR.strip()}'\n".join(blocks).replace(_ACTIVATE, "")
    path = f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"
    environ = {
        name: value for name, value in os.environ.items() if not name.startswith("PIPELINE_")
    }
    done = subprocess.run(
        ["bash", "-c", f"set -eu\n{_STOP_JOBS}\n{script}"],
        cwd=CHECKOUT,
        env={
            **environ,
            "PATH": path,
            "HOME": str(home),
            "PYTHONPATH": str(CHECKOUT),
            "COLUMNS": "200",
        },
        capture_output=True,
        text=True,
        timeout=850,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.split(_SEPARATOR)
