"""The standard output of the commands, and a context that silences standard error."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from core.errors import CONTROLS_BEYOND_ASCII, visible


def _has_ascii_locale() -> bool:
    """Return whether the locale is C or POSIX, whose terminals may show ASCII characters only.

    There Python writes UTF-8 nevertheless, and shows its UTF-8 mode in `sys.flags`.
    """
    return bool(sys.flags.utf8_mode) and os.environ.get("PYTHONUTF8") != "1"


class LocaleConsole(Console):
    """A console that draws bars and curves with ASCII characters in the locale C or POSIX.

    Texts, such as reviews and paths, are written unchanged but for their control characters, which
    are escaped, so that they neither move the cursor nor recolour the terminal.
    """

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        if isinstance(renderable, str):
            renderable = visible(renderable)
        elif isinstance(renderable, Text) and visible(renderable.plain) != renderable.plain:
            parts = renderable.divide(range(1, len(renderable)))
            renderable = Text.assemble(*(_visible_text(part) for part in parts))
        return super().render(renderable, options)

    @property
    def encoding(self) -> str:
        """The encoding of the characters that Rich draws with."""
        return "ascii" if _has_ascii_locale() else super().encoding


def _visible_text(text: Text) -> Text:
    """Return a text of one character, without its style if the character is escaped."""
    shown = visible(text.plain)
    return text if shown == text.plain else Text(shown)


# Rich would interpret some parts of paths and messages as markup, or as the code of an emoji.
out = LocaleConsole(highlight=False, markup=False, emoji=False)
_WIDE = 1000
if not out.is_terminal:
    out.width = _WIDE  # Rich would wrap the cells of a table to 80 columns.


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


def print_parts(console: Console, *parts: str | tuple[str, str]) -> None:
    """Print one line of several parts without markup and without wrapping.

    Paths and messages may resemble markup, and a user can copy a line that is not wrapped.

    Args:
      console: the output.
      parts: the parts of the line, a text or a pair of a text and its style.
    """
    console.print(Text.assemble(*parts), soft_wrap=True)


def print_table(table: Table) -> None:
    """Print a table without wrapping or shortening its cells, so that a user can copy them.

    A terminal that is too narrow wraps the rows itself.
    """
    width = out.width
    out.width = _WIDE
    out.print(table, soft_wrap=True)
    out.width = width


def json_text(value: Any, indent: int | None = None) -> str:
    """Return JSON for the standard output, with the letters of all scripts.

    Args:
      value: the value.
      indent: the indentation; None: one line.
    """
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    # JSON escapes the control characters below U+0020, and a terminal also obeys others.
    return re.sub(f"[{CONTROLS_BEYOND_ASCII}]", lambda found: f"\\u{ord(found[0]):04x}", text)


def quiet_tensorflow() -> None:
    """Let TensorFlow log nothing in this process, unless the user has set another level.

    By default TensorFlow logs missing libraries and CPU features while it is imported and while it
    loads a model, and the content of Examples that it cannot parse. Call this before the import.
    The errors of TensorFlow are exceptions, which the commands report.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


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
