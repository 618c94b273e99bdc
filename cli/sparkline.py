"""A curve in one line of block characters."""

from __future__ import annotations

from collections.abc import Sequence

_BLOCKS = "\u2581\u2582\u2583\u2585\u2587"
_ASCII = "_.-=#"


def sparkline(values: Sequence[float], width: int, is_ascii: bool = False) -> str:
    """Return a line of characters whose heights show values.

    The lowest and the highest character stand for the lowest and the highest value. Equal values
    have the lowest one. If there are more values than characters, a character shows the mean of
    neighbours.

    Args:
      values: the values, which are finite.
      width: the maximum number of characters, at least 1.
      is_ascii: whether the characters must be ASCII.
    """
    levels = _ASCII if is_ascii else _BLOCKS
    count = min(width, len(values))
    shown = [
        _mean(values[len(values) * part // count : len(values) * (part + 1) // count])
        for part in range(count)
    ]
    low = min(shown, default=0.0)
    span = max(shown, default=0.0) - low
    top = len(levels) - 1
    return "".join(levels[round((value - low) / span * top) if span else 0] for value in shown)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
