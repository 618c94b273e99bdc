"""Numbers with 8 bits: each is one of 256 levels, which are chosen to fit the numbers."""

from __future__ import annotations

import numpy as np

COUNT = 256
"""The number of levels, as many as a byte has values."""
_ROUNDS = 20


def fit(values: np.ndarray) -> np.ndarray:
    """Return the levels with a small mean squared distance to `values`.

    Lloyd, "Least squares quantization in PCM" (1982): each round moves each
    level to the mean of the values that are nearest to it. The first levels are dense around 0,
    where most weights are.

    Args:
      values: float [count], at least one.

    Returns:
      float32 [COUNT], sorted.
    """
    ordered = np.sort(values.astype(np.float64))
    sums = np.concatenate([[0.0], np.cumsum(ordered)])
    steps = np.linspace(-1, 1, COUNT)
    levels = np.sign(steps) * steps**2 * np.abs(ordered).max()
    for _ in range(_ROUNDS):
        ends = np.concatenate([[0], np.searchsorted(ordered, _middles(levels)), [len(ordered)]])
        counts = np.diff(ends)
        means = np.diff(sums[ends]) / np.maximum(counts, 1)
        levels = np.sort(np.where(counts, means, levels))
    return levels.astype(np.float32)


def nearest(values: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Return the place of the level that is nearest to each value, uint8 of the shape of values."""
    return np.searchsorted(_middles(levels), values).astype(np.uint8)


def _middles(levels: np.ndarray) -> np.ndarray:
    return (levels[1:] + levels[:-1]) / 2
