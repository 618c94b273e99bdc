"""A reader of reviews for the peers, whose imports add little to their measured memory."""

from __future__ import annotations

import bz2
from collections.abc import Iterator
from pathlib import Path
from typing import IO

_LABELS = {"__label__1": 0, "__label__2": 1}


def read_reviews(path: str) -> Iterator[tuple[int, str]]:
    """Yield (label, text) for each line of a file in Kaggle's fastText format, plain or .bz2.

    Raises:
      ValueError: a line has no `__label__1` or `__label__2`.
    """
    with _open(path) as lines:
        for number, line in enumerate(lines, 1):
            label, _, text = line.rstrip("\n").partition(" ")
            if label not in _LABELS:
                raise ValueError(f"{path}:{number}: no label")
            yield _LABELS[label], text


def _open(path: str) -> IO[str]:
    opened = bz2.open if Path(path).suffix == ".bz2" else open
    return opened(path, "rt", encoding="utf-8", newline="\n")
