"""Counts of Examples by class.

Transform stores them next to the splits, because counting again would take a pass over the files.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import tensorflow as tf

from core.errors import InputError, write_again
from core.machine import cores
from preprocessing import features
from preprocessing.fast.compiled import compiled
from preprocessing.fast.ngrams import NgramIds
from preprocessing.labels import Labels
from preprocessing.settings import TransformConfig, ngram_rows

LABELS, NGRAMS = "labels", "ngrams"
"""Kinds of counts by class."""
_AT, _SHAPE = "at", "shape"
"""Arrays in a file of `ClassCounter.save`: the indices of the n-grams that occur in the table, and
the shape of the table."""
_CLASSES_FILE = "class_counts.npz"
_MAX_COUNTS = 2**25
"""Classes times n-grams of the largest table that Transform counts, of 8 bytes in each worker."""


def check_labels(labels: np.ndarray, classes: int) -> None:
    """Check that each label is the index of a class.

    In a loss such a label would be a NaN on a GPU, an error without the value under XLA, and a
    wrong number with two classes.

    Args:
      labels: the labels of Examples, int64.
      classes: the number of classes.

    Raises:
      InputError: a label is the index of no class.
    """
    first = _first_outside(labels, classes)
    if first is not None:
        raise InputError(
            f"an Example has the label {first}, but the labels of the {classes} classes are 0 to "
            f"{classes - 1}; {write_again('the Examples')}"
        )


class ClassCounter:
    """A counter of Examples by class, and of the n-grams of each class.

    Args:
      classes: the number of classes.
      rows: the number of n-grams that are distinguished, see `ngram_rows`; 0: n-grams are not
        counted.
      buckets: the number of ids of n-grams, if they are more than the rows.

    Attributes:
      counts: LABELS, int64 [classes]: the Examples of each class. NGRAMS, int64 [classes, rows]:
        the occurrences of each n-gram in the Examples of each class.
    """

    def __init__(self, classes: int, rows: int, buckets: int = 0):
        self.counts = {
            LABELS: np.zeros([classes], np.int64),
            NGRAMS: np.zeros([classes, rows], np.int64),
        }
        self._classes = classes
        self._rows = rows
        self._is_folded = buckets > rows

    @classmethod
    def for_transform(cls, config: TransformConfig, labels: Labels) -> ClassCounter:
        """Return a counter for the outputs of `preprocessing_fn` with a config."""
        if features.NGRAMS not in config.features:
            return cls(labels.number, 0)
        buckets = config.transform.ngram_buckets
        rows = ngram_rows(buckets, labels)
        return cls(labels.number, rows if rows * labels.number <= _MAX_COUNTS else 0, buckets)

    def add(self, labels: np.ndarray, ngrams: NgramIds | None = None) -> None:
        """Count a batch.

        Args:
          labels: the labels, int64 [batch].
          ngrams: the n-grams of the batch, which are required unless `rows` is 0.

        Raises:
          InputError: a label is the index of no class, or an n-gram that of no row.
        """
        check_labels(labels, self._classes)
        self.counts[LABELS] += np.bincount(labels, minlength=self._classes)
        if self._rows:
            assert ngrams is not None
            # The remainder of every id takes time, and most tables have a row for each id.
            ids = ngrams.ids % self._rows if self._is_folded else ngrams.ids
            _check_ids(ids, self._rows)
            _count(self.counts[NGRAMS], labels, ids, ngrams.row_lengths)

    def save(self, file: str) -> None:
        """Write the counts that are not 0 to a file; `write_class_counts` sums such files.

        Args:
          file: the path, local or remote.

        Raises:
          tensorflow.errors.OpError: the file cannot be written.
        """
        table = self.counts[NGRAMS]
        at = np.flatnonzero(table)
        _save(
            file,
            {
                LABELS: self.counts[LABELS],
                NGRAMS: table.reshape(-1)[at].astype(np.min_scalar_type(table.max(initial=0))),
                _AT: at.astype(np.min_scalar_type(table.size)),
                _SHAPE: table.shape,
            },
        )


def _first_outside(indices: np.ndarray, size: int) -> int | None:
    """Return the first index that is not in [0, size); None if there is no such index."""
    if not indices.size or (indices.min() >= 0 and indices.max() < size):
        return None
    return int(indices[(indices < 0) | (indices >= size)][0])


def _check_ids(ids: np.ndarray, rows: int) -> None:
    """Check that each id is the index of a row, because the compiled code does not check it.

    Raises:
      InputError: an id is the index of no row.
    """
    first = _first_outside(ids, rows)
    if first is not None:
        raise InputError(
            f"an Example has the n-gram {first}, but with this transform.ngram_buckets n-grams are "
            f"0 to {rows - 1}; {write_again('the Examples')}"
        )


@compiled
def _count(table: np.ndarray, labels: np.ndarray, ids: np.ndarray, row_lengths: np.ndarray) -> None:
    """Add the ids of each row to the counts of the label of the row, int64 [classes, rows]."""
    read = 0
    for row in range(len(labels)):
        counts = table[labels[row]]
        for _ in range(row_lengths[row]):
            counts[ids[read]] += 1
            read += 1


def write_class_counts(folder: str, parts: Mapping[str, Sequence[str]]) -> None:
    """Write the counts by class of an Examples artifact; do nothing if no split was counted.

    Args:
      folder: the folder of the artifact.
      parts: name of the folder of a split -> files that `ClassCounter.save` wrote for this split,
        at least one. Their counts are summed.

    Raises:
      tensorflow.errors.OpError: a file cannot be read or written.
    """
    counts = {}
    for split, files in parts.items():
        for kind, total in _sum(files).items():
            # The file is not compressed: with a small train split, compression takes longer than
            # the pass of the Trainer that the counts replace.
            counts[f"{split}.{kind}"] = total.astype(np.min_scalar_type(total.max(initial=0)))
    if counts:
        _save(os.path.join(folder, _CLASSES_FILE), counts)


def _sum(files: Sequence[str]) -> dict[str, np.ndarray]:
    """Return the sums of the counts in files that `ClassCounter.save` wrote."""
    totals: dict[str, np.ndarray] = {}
    for part in _load_in_turn(files):
        if not totals:
            totals = {
                LABELS: np.zeros(part[LABELS].shape, np.int64),
                NGRAMS: np.zeros(part[_SHAPE], np.int64),
            }
        totals[LABELS] += part[LABELS]
        totals[NGRAMS].reshape(-1)[part[_AT]] += part[NGRAMS].astype(np.int64)
    return totals


def read_class_counts(
    patterns: Sequence[str], kind: str, classes: int, rows: int = 0
) -> np.ndarray | None:
    """Return the counts of the Examples in the files that match `patterns`.

    Args:
      patterns: patterns of files. Only the counts of FOLDER/Split-train/* are stored, in FOLDER.
      kind: LABELS or NGRAMS.
      classes: the number of classes.
      rows: the number of n-grams that are distinguished.

    Returns:
      int64, LABELS [classes], NGRAMS [classes, rows]; None if `write_class_counts` did not store
      them.

    Raises:
      tensorflow.errors.OpError: the stored counts cannot be read.
    """
    total = ClassCounter(classes, rows).counts[kind]
    for pattern in set(patterns):
        split, files = os.path.split(pattern)
        stored = os.path.join(os.path.dirname(split), _CLASSES_FILE)
        if files != "*" or not tf.io.gfile.exists(stored):
            return None
        counts = _load(stored).get(f"{os.path.basename(split)}.{kind}")
        if counts is None or counts.shape != total.shape:
            return None
        # The stored type is the smallest one, and NumPy adds uint64 to int64 as floats.
        total += counts.astype(np.int64)
    return total


def _save(file: str, arrays: Mapping[str, Any]) -> None:
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    with tf.io.gfile.GFile(file, "wb") as out:
        out.write(stream.getvalue())


def _load_in_turn(files: Sequence[str]) -> Iterator[dict[str, np.ndarray]]:
    """Yield the arrays of each file. Threads load as many files at a time as there are cores."""
    at_once = cores()
    with ThreadPoolExecutor(at_once) as pool:
        for first in range(0, len(files), at_once):
            yield from pool.map(_load, files[first : first + at_once])


def _load(file: str) -> dict[str, np.ndarray]:
    with tf.io.gfile.GFile(file, "rb") as stream, np.load(io.BytesIO(stream.read())) as arrays:
        return dict(arrays)
