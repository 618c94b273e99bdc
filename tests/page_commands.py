"""Commands of a page of the documentation, as a reader calls them in one shell."""

import os
import re
import subprocess
import sys
from typing import NamedTuple

from tests.checkout import CHECKOUT

_COMMANDS = re.compile(r"^```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_OUTPUT = re.compile(r"^```\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_ACTIVATE = ". .venv/bin/activate\n"
_SEPARATOR = "--- block ---\n"


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
    return Page(_COMMANDS.findall(text), _OUTPUT.findall(text))


def run_blocks(blocks: list[str], home: os.PathLike[str]) -> list[str]:
    """Run blocks of commands one after the other in one shell; return what each one prints.

    The shell ends at the first command that fails.

    Args:
      blocks: the commands.
      home: the home of the reader.
    """
    # The environment is that of the tests, which need not be the .venv of the checkout.
    path = f"export PATH={os.path.dirname(sys.executable)}:$PATH\n"
    script = f"echo '{_SEPARATOR.strip()}'\n".join(blocks).replace(_ACTIVATE, path)
    environ = {
        name: value for name, value in os.environ.items() if not name.startswith("PIPELINE_")
    }
    done = subprocess.run(
        ["bash", "-c", f"set -eu\n{script}"],
        cwd=CHECKOUT,
        env={**environ, "HOME": str(home), "PYTHONPATH": str(CHECKOUT), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=850,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.split(_SEPARATOR)
