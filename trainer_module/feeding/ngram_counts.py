"""The occurrences of the n-grams in each class, which Transform stores next to the splits.

The scale of the bag of n-grams depends on them, and counting takes a pass over the train split.
"""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from preprocessing import features

CLASSES = 2
_FILE = "ngram_counts.npz"
_MOST_BUCKETS = 2**24
"""Buckets of the largest table that Transform counts. Each of its workers has 16 bytes a bucket."""


class Counter:
    """Counts the n-grams of transformed Examples."""

    def __init__(self, buckets: int):
        self._buckets = buckets
        self._counts = np.zeros(CLASSES * buckets, np.int64)

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Counter | None:
        """Return a counter; None if there is nothing to count, or the table would be too large.

        Args:
          config: the `custom_config` of `preprocessing_fn`.
        """
        if features.NGRAMS not in config["features"] or config["ngram_buckets"] > _MOST_BUCKETS:
            return None
        return cls(config["ngram_buckets"])

    def add(self, batch: Mapping[str, Any]) -> None:
        """Count the n-grams of a batch, whose tensors are the outputs of `preprocessing_fn`."""
        ngrams, labels = batch[features.NGRAMS], batch[features.LABEL].numpy()[:, 0]
        reviews = ngrams.indices.numpy()[:, 0]
        # Twice as fast as np.bincount, whose result would have the size of the table.
        np.add.at(self._counts, (labels * self._buckets)[reviews] + ngrams.values.numpy(), 1)

    def save(self, file: str) -> None:
        """Write the counts to a file for `write`."""
        stream = io.BytesIO()
        np.save(stream, self._counts.reshape(CLASSES, self._buckets))
        _write(file, stream)


def write(folder: str, parts: Mapping[str, Sequence[str]]) -> None:
    """Write the counts of an Examples artifact; nothing if no split was counted.

    Args:
      folder: the folder of the artifact.
      parts: name of the folder of a split -> files of its counters, which are summed.
    """
    counts = {}
    for split, files in parts.items():
        total = sum(np.load(_opened(file)) for file in files)
        # Not compressed: with a small train split that would take longer than the Trainer's pass.
        counts[split] = total.astype(np.min_scalar_type(total.max()))
    if counts:
        stream = io.BytesIO()
        np.savez(stream, **counts)
        _write(os.path.join(folder, _FILE), stream)


def read(patterns: Sequence[str], buckets: int) -> np.ndarray | None:
    """Return the counts of the Examples in the files that match `patterns`, int64 [2, buckets].

    Returns None if `write` did not store them: only those of a pattern FOLDER/Split-train/* are
    stored in FOLDER.
    """
    total = np.zeros([CLASSES, buckets], np.int64)
    for pattern in set(patterns):
        split, files = os.path.split(pattern)
        stored = os.path.join(os.path.dirname(split), _FILE)
        if files != "*" or not tf.io.gfile.exists(stored):
            return None
        with np.load(_opened(stored)) as counts:
            name = os.path.basename(split)
            if name not in counts or counts[name].shape != total.shape:
                return None
            total += counts[name]
    return total


def _write(file: str, stream: io.BytesIO) -> None:
    with tf.io.gfile.GFile(file, "wb") as out:
        out.write(stream.getvalue())


def _opened(file: str) -> io.BytesIO:
    with tf.io.gfile.GFile(file, "rb") as stream:
        return io.BytesIO(stream.read())
