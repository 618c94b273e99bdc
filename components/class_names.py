"""The names of classes in messages: in one line, short, and not too many."""

from __future__ import annotations

from collections.abc import Collection

from preprocessing.reading.records import printable

SHOWN = 5
"""Number of names in a message."""
_CHARACTERS = 40
"""Maximum number of characters of a name in a list."""


def short(name: str) -> str:
    """Return a name for a list in a message; in quotation marks if it contains a comma."""
    found = printable(name if len(name) <= _CHARACTERS else f"{name[:_CHARACTERS]}...")
    return f'"{found}"' if "," in found else found


def shown(names: Collection[str], most: int = SHOWN) -> str:
    """Return names as a list for a message.

    Args:
      names: the names of classes, or labels.
      most: the maximum number in the list. It ends with the number of the others.
    """
    first = [short(name) for name in list(names)[:most]]
    more = len(names) - len(first)
    return ", ".join(first) + (f" and {more:,} more" if more else "")
