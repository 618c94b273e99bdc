"""The standard output of the commands, and a context that silences standard error."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from rich.console import Console

# Rich would interpret some parts of paths and messages as markup, or as the code of an emoji.
out = Console(highlight=False, markup=False, emoji=False)
if not out.is_terminal:
    out.width = 1000  # Rich would wrap the cells of a table to 80 columns.


def error_console() -> Console:
    """Return the console of standard error, for errors and progress."""
    return Console(stderr=True, highlight=False, markup=False, emoji=False)


def print_line(line: str) -> None:
    """Print one line without wrapping, so that a user can copy it from the terminal."""
    out.print(line, soft_wrap=True)


@contextlib.contextmanager
def silent_stderr() -> Iterator[None]:
    """Discard what libraries write to standard error in this context; exceptions propagate.

    TensorFlow logs missing GPUs and old Python versions there. No setting disables these lines in
    every version.
    """
    kept = os.dup(2)
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
