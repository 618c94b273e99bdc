"""Gzipped TFRecord files of Examples: list, read and sample them, and find a damaged file."""

from __future__ import annotations

import contextlib
import heapq
import math
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import tensorflow as tf

from core.errors import InputError
from core.files import list_files

_BATCH = 1024
_FILES_AT_ONCE = 2
_OPENED_AT_ONCE = 16
"""Opening a remote file takes tens of milliseconds."""

Result = TypeVar("Result")


def example_files(folder: str) -> list[str]:
    """Return the sorted paths of the TFRecord files of a split.

    Args:
      folder: the folder of the split, local or remote.

    Raises:
      InputError: the folder has no files. Every split is written with at least one.
      tensorflow.errors.OpError: the folder cannot be listed.
    """
    files = list_files(folder)
    if not files:
        raise InputError(
            f"{folder}: the Examples were deleted, although ML Metadata lists them; run once with "
            "--set cache=false to write them again"
        )
    return files


def batches(files: Sequence[str], size: int) -> tf.data.Dataset:
    """Return batches of the serialized Examples of files, always in the same order.

    Args:
      files: paths of gzipped TFRecord files.
      size: Examples in a batch.

    Returns:
      A dataset of string tensors [size], or shorter at the end of each file. Its iterator raises
      tensorflow.errors.OpError for a file that cannot be read; `read` names a damaged file.
    """
    return tf.data.Dataset.from_tensor_slices(list(files)).interleave(
        lambda file: tf.data.TFRecordDataset(file, compression_type="GZIP").batch(size),
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
        tf.data.Dataset.from_tensor_slices(list(files))
        .enumerate()
        .flat_map(
            lambda index, file: (
                tf.data.TFRecordDataset(file, compression_type="GZIP")
                .batch(size)
                .map(lambda batch: (index, batch))
            )
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
def report_damaged_file(files: Iterable[str]) -> Iterator[None]:
    """Raise an error that names the damaged file if the context fails because of damaged data.

    The error of TensorFlow does not name the file.

    Args:
      files: the gzipped TFRecord files that the context reads.

    Raises:
      InputError: a file is damaged.
      tensorflow.errors.DataLossError: the context failed because of damaged data that is in none of
        the files.
    """
    try:
        yield
    except tf.errors.DataLossError:
        for file in files:
            try:
                for _ in tf.data.TFRecordDataset(file, compression_type="GZIP").batch(_BATCH):
                    pass
            except tf.errors.DataLossError:
                raise InputError(
                    f"{file} is damaged; run once with --set cache=false to write it again"
                ) from None
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
