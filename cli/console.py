"""The standard output of the commands, and a context that silences standard error."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator

from rich.console import Console


def _has_ascii_locale() -> bool:
    """Return whether the locale is C or POSIX, whose terminals may show ASCII characters only.

    There Python writes UTF-8 nevertheless, and shows its UTF-8 mode in `sys.flags`.
    """
    return bool(sys.flags.utf8_mode) and os.environ.get("PYTHONUTF8") != "1"


class LocaleConsole(Console):
    """A console that draws bars and curves with ASCII characters in the locale C or POSIX.

    Texts, such as reviews and paths, are written unchanged.
    """

    @property
    def encoding(self) -> str:
        """The encoding of the characters that Rich draws with."""
        return "ascii" if _has_ascii_locale() else super().encoding


# Rich would interpret some parts of paths and messages as markup, or as the code of an emoji.
out = LocaleConsole(highlight=False, markup=False, emoji=False)
if not out.is_terminal:
    out.width = 1000  # Rich would wrap the cells of a table to 80 columns.


def error_console() -> Console:
    """Return the console of standard error, for errors and progress."""
    return LocaleConsole(stderr=True, highlight=False, markup=False, emoji=False)


def is_live(console: Console) -> bool:
    """Return whether a console is a terminal whose lines can be written again."""
    return console.is_terminal and not console.is_dumb_terminal


def ellipsis(console: Console) -> str:
    """Return the characters that follow the name of an unfinished activity."""
    return "..." if console.options.ascii_only else "\N{HORIZONTAL ELLIPSIS}"


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
