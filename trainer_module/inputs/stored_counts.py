"""The counts of Examples and of n-grams, which Transform stores next to the splits.

The steps of an epoch depend on the number of Examples, and the scale of the bag of n-grams on the
occurrences of the n-grams in each class. Either count would take a pass over the files.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from preprocessing import features
from trainer_module.inputs.autotune import without_autotune

CLASSES = 2
_EXAMPLES_FILE = "example_counts.json"
_NGRAMS_FILE = "ngram_counts.npz"
_MAX_BUCKETS = 2**24
"""Buckets of the largest table that Transform counts. Each of its workers has 16 bytes a bucket."""
_CHUNK = 1024
_FILES_AT_ONCE = 8


def write_example_counts(folder: str, counts: Mapping[str, int]) -> None:
    """Write the numbers of Examples of an Examples artifact.

    Args:
      folder: the folder of the artifact.
      counts: path of each file, relative to `folder` -> its number of Examples.
    """
    with tf.io.gfile.GFile(os.path.join(folder, _EXAMPLES_FILE), "w") as stream:
        stream.write(json.dumps(counts))


def count_examples(files: Sequence[str]) -> list[int]:
    """Return the number of Examples in each gzipped TFRecord file.

    A file that `write_example_counts` did not list is read.
    """
    known = _known({os.path.dirname(file) for file in files})
    unknown = [file for file in files if file not in known]
    known.update(zip(unknown, _counted(unknown), strict=True))
    return [known[file] for file in files]


def _known(splits: Iterable[str]) -> dict[str, int]:
    """Return the paths and the counts that are stored next to the folders of some splits."""
    found: dict[str, int] = {}
    for folder in {os.path.dirname(split) for split in splits}:
        stored = os.path.join(folder, _EXAMPLES_FILE)
        if tf.io.gfile.exists(stored):
            with tf.io.gfile.GFile(stored) as stream:
                counts = json.loads(stream.read())
            found.update({os.path.join(folder, file): counts[file] for file in counts})
    return found


def _counted(files: Sequence[str]) -> list[int]:
    """Count the Examples of some files, of several in parallel."""

    def sizes(place: tf.Tensor, file: tf.Tensor) -> tf.data.Dataset:
        chunks = tf.data.TFRecordDataset(file, compression_type="GZIP").batch(_CHUNK)
        return chunks.map(lambda chunk: (place, tf.size(chunk)))

    counts = [0] * len(files)
    paths = tf.data.Dataset.from_tensor_slices(tf.constant(files, tf.string)).enumerate()
    read = paths.interleave(
        sizes, cycle_length=_FILES_AT_ONCE, num_parallel_calls=_FILES_AT_ONCE, deterministic=False
    )
    for place, size in without_autotune(read).as_numpy_iterator():
        counts[place] += int(size)
    return counts


class NgramCounter:
    """Counts the n-grams of transformed Examples."""

    def __init__(self, buckets: int):
        self._buckets = buckets
        self._counts = np.zeros(CLASSES * buckets, np.int64)

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> NgramCounter | None:
        """Return a counter; None if there is nothing to count, or the table would be too large.

        Args:
          config: the `custom_config` of `preprocessing_fn`.
        """
        if features.NGRAMS not in config["features"] or config["ngram_buckets"] > _MAX_BUCKETS:
            return None
        return cls(config["ngram_buckets"])

    @property
    def counts(self) -> np.ndarray:
        """The occurrences of each n-gram in negative and positive reviews, int64 [2, buckets]."""
        return self._counts.reshape(CLASSES, self._buckets)

    def add(self, batch: Mapping[str, Any]) -> None:
        """Count the n-grams of a batch, whose tensors are the outputs of `preprocessing_fn`."""
        ngrams, label = batch[features.NGRAMS], batch[features.LABEL]
        self.add_rows(label.numpy(), ngrams.indices.numpy()[:, 0], ngrams.values.numpy())

    def add_rows(self, label: np.ndarray, rows: np.ndarray, ids: np.ndarray) -> None:
        """Count n-grams.

        Args:
          label: integers [batch, 1].
          rows, ids: the review and the id of each n-gram, integers [n-grams].
        """
        # Twice as fast as np.bincount, whose result would have the size of the table.
        np.add.at(self._counts, (label[:, 0] * self._buckets)[rows] + ids, 1)

    def save(self, file: str) -> None:
        """Write the counts to a file for `write_ngram_counts`."""
        stream = io.BytesIO()
        np.save(stream, self.counts)
        _write(file, stream)


def write_ngram_counts(folder: str, parts: Mapping[str, Sequence[str]]) -> None:
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
        _write(os.path.join(folder, _NGRAMS_FILE), stream)


def read_ngram_counts(patterns: Sequence[str], buckets: int) -> np.ndarray | None:
    """Return the counts of the Examples in the files that match `patterns`, int64 [2, buckets].

    Returns None if `write_ngram_counts` did not store them: only those of a pattern
    FOLDER/Split-train/* are stored in FOLDER.
    """
    total = np.zeros([CLASSES, buckets], np.int64)
    for pattern in set(patterns):
        split, files = os.path.split(pattern)
        stored = os.path.join(os.path.dirname(split), _NGRAMS_FILE)
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
