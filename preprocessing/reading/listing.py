"""Lists of labels and of classes in messages."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from preprocessing.reading.records import printable

_MOST, _CHARACTERS = 5, 40
"""The maximum number of names in a list, and the maximum number of characters of a name."""


def listed(names: Collection[str], most: int = _MOST) -> str:
    """Return names as a list for a message, which ends with the number of names that it omits.

    Args:
      names: the names.
      most: the maximum number of names in the list.
    """
    return joined([short(name) for name in names], most)


def counted(names: Collection[str], numbers: Mapping[str, int]) -> str:
    """Return names with their numbers as a list, such as `refund (3), price (1)`.

    Args:
      names: the names.
      numbers: name -> its number.
    """
    return joined([f"{short(name)} ({numbers[name]:,})" for name in names])


def joined(parts: Sequence[str], most: int = _MOST) -> str:
    """Return the first parts of a list, and the number of the others.

    Args:
      parts: the parts, as they are shown.
      most: the maximum number of parts that are shown.
    """
    more = len(parts) - most
    return ", ".join(parts[:most]) + (f" and {more:,} more" if more > 0 else "")


def short(name: str) -> str:
    """Return the beginning of a name; in quotation marks if it contains a comma."""
    text = printable(name if len(name) <= _CHARACTERS else f"{name[:_CHARACTERS]}...")
    return f'"{text}"' if "," in text else text
