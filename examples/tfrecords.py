"""Gzipped TFRecord files of Examples: list, count, read and sample them, and find a damaged file.

The number of Examples in each file is stored next to the splits of an artifact. TensorFlow reads a
file that was cut off between two records, or is empty now, without an error. So a reader compares
what it has read with the stored number, and a list of files with the stored paths.
"""

from __future__ import annotations

import contextlib
import fnmatch
import heapq
import json
import math
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import tensorflow as tf

from core.errors import InputError, write_again
from core.files import list_files

_COUNTS_FILE = "example_counts.json"
_DAMAGED = (tf.errors.DataLossError, tf.errors.FailedPreconditionError)
"""The errors of TensorFlow for damaged data, and for another number of records than expected."""
_OTHER_NUMBER = "Input dataset was expected to contain"
"""The beginning of TensorFlow's message about another number of records than expected. Other errors
of its type, such as one about a table without values, have other causes."""
_BATCH = 1024
_FILES_AT_ONCE = 2
_OPENED_AT_ONCE = 16
"""Opening a remote file takes tens of milliseconds."""

Result = TypeVar("Result")


def write_example_counts(folder: str, counts: Mapping[str, int]) -> None:
    """Write the number of Examples in each file of the artifact in `folder`.

    Args:
      folder: the folder of the artifact, local or remote.
      counts: path of a file, relative to `folder` -> number of its Examples.

    Raises:
      tensorflow.errors.OpError: the file of the counts cannot be written.
    """
    with tf.io.gfile.GFile(os.path.join(folder, _COUNTS_FILE), "w") as stream:
        stream.write(json.dumps(counts))


def _stored_counts(artifact: str) -> dict[str, int]:
    """Return path of a file -> number of its Examples; empty if the artifact has no counts.

    Args:
      artifact: the folder of the artifact, for which `write_example_counts` was called.
    """
    stored = os.path.join(artifact, _COUNTS_FILE)
    if not tf.io.gfile.exists(stored):
        return {}
    with tf.io.gfile.GFile(stored) as stream:
        counts = json.loads(stream.read())
    return {os.path.join(artifact, file): count for file, count in counts.items()}


def _known_counts(files: Sequence[str]) -> dict[str, int]:
    """Return file -> number of its Examples, for those in artifacts with counts.

    Args:
      files: paths ARTIFACT/Split-NAME/FILE.
    """
    known: dict[str, int] = {}
    for folder in {os.path.dirname(os.path.dirname(file)) for file in files}:
        known |= _stored_counts(folder)
    return {file: known[file] for file in files if file in known}


def count_examples(files: Sequence[str]) -> list[int]:
    """Return the number of Examples in each gzipped TFRecord file.

    A file without a stored number is read and counted.

    Args:
      files: paths ARTIFACT/Split-NAME/FILE. The numbers of an artifact are stored in its folder.

    Raises:
      InputError: a file without a stored number is damaged.
      tensorflow.errors.OpError: a file cannot be read.
    """
    known = _known_counts(files)
    unknown = [file for file in files if file not in known]
    known |= zip(unknown, map_files(_count_examples, unknown), strict=True)
    return [known[file] for file in files]


def _count_examples(file: str) -> int:
    chunks = records(file).batch(_BATCH).map(tf.size)
    with report_damaged_file([file]):
        return int(sum(without_autotune(chunks).as_numpy_iterator()))


def find_files(folder: str, names: str = "*") -> list[str]:
    """Return the sorted paths of TFRecord files of a split; [] if no file was ever there.

    Args:
      folder: the folder of the split, local or remote.
      names: a pattern for the names of the files.

    Raises:
      InputError: a file with a stored number of Examples was deleted.
      tensorflow.errors.OpError: the folder cannot be listed.
    """
    files = list_files(folder, names)
    stored = _stored_counts(os.path.dirname(folder))
    expected = (file for file in stored if os.path.dirname(file) == folder)
    for file in sorted(set(expected).difference(files)):
        if fnmatch.fnmatch(os.path.basename(file), names):
            raise InputError(_deleted(file if files else folder))
    return files


def example_files(folder: str) -> list[str]:
    """Return the sorted paths of the TFRecord files of a split.

    Args:
      folder: the folder of the split, local or remote.

    Raises:
      InputError: a file was deleted. Every split is written with at least one.
      tensorflow.errors.OpError: the folder cannot be listed.
    """
    files = find_files(folder)
    if not files:
        raise InputError(_deleted(folder))
    return files


def _deleted(path: str) -> str:
    return (
        f"{path}: the Examples were deleted, although ML Metadata lists them; {write_again('them')}"
    )


def records(
    file: str | tf.Tensor,
    count: int | tf.Tensor | None = None,
    index: int = 0,
    stride: int = 1,
) -> tf.data.Dataset:
    """Return the serialized Examples of a file, or every `stride`-th of them.

    Args:
      file: the path of a gzipped TFRecord file.
      count: the number of Examples that are returned; None: it is unknown.
      index: the first Example that is returned.
      stride: the distance to the next one.

    Returns:
      A dataset of string tensors []. Its iterator raises tensorflow.errors.OpError for a file that
      cannot be read or has another number of Examples; `report_damaged_file` names the file.
    """
    found = tf.data.TFRecordDataset(file, compression_type="GZIP")
    if stride > 1:
        found = found.shard(stride, index)
    return found if count is None else found.apply(tf.data.experimental.assert_cardinality(count))


def _counted(files: Sequence[str]) -> tf.data.Dataset:
    """Return the arguments of `records` for each file."""
    counts = tf.constant(count_examples(files), tf.int64)
    return tf.data.Dataset.from_tensor_slices((tf.constant(list(files), tf.string), counts))


def batches(files: Sequence[str], size: int) -> tf.data.Dataset:
    """Return batches of the serialized Examples of files, always in the same order.

    Args:
      files: paths of gzipped TFRecord files.
      size: Examples in a batch.

    Returns:
      A dataset of string tensors [size], or shorter at the end of each file. Its iterator raises
      the errors of that of `records`; `read` names a damaged file.

    Raises:
      InputError, tensorflow.errors.OpError: see `count_examples`.
    """
    return _counted(files).interleave(
        lambda file, count: records(file, count).batch(size),
        cycle_length=_FILES_AT_ONCE,
        num_parallel_calls=_FILES_AT_ONCE,
        deterministic=True,
    )


def numbered_batches(files: Sequence[str], size: int) -> tf.data.Dataset:
    """Return the `batches` of files, each with its number from 0, int64 []."""
    return batches(files, size).enumerate()


def batches_of_files(files: Sequence[str], size: int) -> tf.data.Dataset:
    """Return batches of the serialized Examples of files, file by file.

    Args:
      files: paths of gzipped TFRecord files.
      size: Examples in a batch.

    Returns:
      A dataset of pairs: the index of the file, int64 [], and a string tensor [size], or shorter at
      the end of each file. Its iterator raises the errors of that of `batches`.
    """
    return (
        _counted(files)
        .enumerate()
        .flat_map(
            lambda index, counted: records(*counted).batch(size).map(lambda batch: (index, batch))
        )
    )


def read(dataset: tf.data.Dataset, files: Sequence[str]) -> Iterator[Any]:
    """Yield the elements of a dataset as eager tensors, in the structure of its elements.

    Args:
      dataset: a dataset that reads `files`.
      files: the gzipped TFRecord files, one of which is named by the error if it is damaged.

    Raises:
      InputError: a file is damaged.
      tensorflow.errors.OpError: a file cannot be read.
    """
    with report_damaged_file(files):
        yield from without_autotune(dataset)


def read_sample(folder: str, size: int, max_files: int | None = None) -> list[bytes]:
    """Return a random sample of the serialized Examples of a split.

    The sample consists of the Examples with the smallest hashes. So it does not depend on the order
    of the input, and every call returns the same sample. Memory grows with `size`, not with the
    split.

    Args:
      folder: the folder of the split, with gzipped TFRecord files.
      size: the maximum number of Examples in the sample.
      max_files: the maximum number of files that are read, at regular distances in the split; None:
        all of them.

    Raises:
      InputError: the files were deleted, or one of them is damaged.
      tensorflow.errors.OpError: a file cannot be read.
    """
    files = example_files(folder)
    if max_files:
        files = files[:: math.ceil(len(files) / max_files)]
    examples = (
        example for batch in read(batches(files, _BATCH), files) for example in batch.numpy()
    )
    return heapq.nsmallest(size, examples, key=zlib.crc32)


@contextlib.contextmanager
def report_damaged_file(files: Sequence[str]) -> Iterator[None]:
    """Raise an error that names the damaged file if the context fails because of damaged data.

    The error of TensorFlow does not name the file. A file with another number of Examples than the
    stored one is damaged too.

    Args:
      files: the gzipped TFRecord files that the context reads.

    Raises:
      InputError: a file is damaged.
      tensorflow.errors.OpError: the context failed, but none of the files is damaged.
    """
    try:
        yield
    except _DAMAGED as error:
        if isinstance(error, tf.errors.FailedPreconditionError) and _OTHER_NUMBER not in str(error):
            raise  # without reading all files again
        known = _known_counts(files)
        for file in files:
            try:
                for _ in records(file, known.get(file)).batch(_BATCH):
                    pass
            except _DAMAGED:
                raise InputError(f"{file} is damaged; {write_again('it')}") from None
        raise


def map_files(function: Callable[[str], Result], files: Iterable[str]) -> list[Result]:
    """Return `function(file)` for each file, computed in threads.

    Args:
      function: a function that several threads may call. Its exceptions pass through.
      files: the paths, in the order of the results.
    """
    with ThreadPoolExecutor(_OPENED_AT_ONCE) as pool:
        return list(pool.map(function, files))


def without_autotune(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Return the dataset with autotuning disabled.

    tf.data tunes each iterator in a thread, with a period that doubles up to 60 s. The end of an
    iterator waits for this thread. It wakes the thread before it records the cancellation
    (`CancellationManager::StartCancelWithStatus` runs the callbacks first), so the thread may find
    nothing to do and sleep for the rest of its period (TensorFlow 2.16 and 2.21). Trainings waited
    for up to 99 s after their last step.

    tf.data.AUTOTUNE then means one parallel call for each CPU core, and a buffer of prefetched
    elements that grows on demand.
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    return dataset.with_options(options)
