"""Join small arrays to arrays of a bounded size."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

import numpy as np


def in_chunks(
    parts: Iterable[tuple[str, np.ndarray]], size: int
) -> Iterator[tuple[str, np.ndarray]]:
    """Join the arrays of each name, in their order; no array that is yielded is empty.

    Args:
      parts: names and arrays, which are read one after the other.
      size: an array is yielded as soon as it has at least this length, and the rest at the end.
    """
    waiting: defaultdict[str, list[np.ndarray]] = defaultdict(list)
    sizes: Counter[str] = Counter()
    for name, part in parts:
        if not len(part):
            continue
        waiting[name].append(part)
        sizes[name] += len(part)
        if sizes[name] >= size:
            yield name, np.concatenate(waiting.pop(name))
            del sizes[name]
    for name, arrays in waiting.items():
        yield name, np.concatenate(arrays)
