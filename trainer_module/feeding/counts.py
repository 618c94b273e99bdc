"""The numbers of Examples in the files of a split, which Transform stores next to the splits.

The steps of an epoch depend on them, and counting Examples takes a pass over all files.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence

import tensorflow as tf

from trainer_module.feeding.autotune import without_autotune

_FILE = "example_counts.json"
_CHUNK = 1024
_FILES_AT_ONCE = 8


def write(folder: str, counts: Mapping[str, int]) -> None:
    """Write the numbers of Examples of an Examples artifact.

    Args:
      folder: the folder of the artifact.
      counts: path of each file, relative to `folder` -> its number of Examples.
    """
    with tf.io.gfile.GFile(os.path.join(folder, _FILE), "w") as stream:
        stream.write(json.dumps(counts))


def count_examples(files: Sequence[str]) -> list[int]:
    """Return the number of Examples in each gzipped TFRecord file.

    A file that `write` did not list is read.
    """
    known = _known({os.path.dirname(file) for file in files})
    unknown = [file for file in files if file not in known]
    known.update(zip(unknown, _counted(unknown), strict=True))
    return [known[file] for file in files]


def _known(splits: Iterable[str]) -> dict[str, int]:
    """Return the paths and the counts that are stored next to the folders of some splits."""
    found: dict[str, int] = {}
    for folder in {os.path.dirname(split) for split in splits}:
        stored = os.path.join(folder, _FILE)
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
