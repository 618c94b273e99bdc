"""What the commands print to, and what they keep from printing."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from rich.console import Console

# Paths and messages may look like markup, or like codes of emoji.
out = Console(highlight=False, markup=False, emoji=False)


def print_line(line: str) -> None:
    """Print one line, which is not wrapped, so that it can be copied from a terminal."""
    out.print(line, soft_wrap=True)


@contextlib.contextmanager
def silent_stderr() -> Iterator[None]:
    """Discard what libraries write to standard error; exceptions still come through.

    TensorFlow logs missing GPUs and old Python versions there, and has no setting against it that
    works in every version.
    """
    kept = os.dup(2)
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
