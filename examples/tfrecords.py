"""Gzipped TFRecord files of Examples: their list, their records, a sample, the damaged one."""

from __future__ import annotations

import contextlib
import heapq
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
    """Return the sorted TFRecord files in the folder of a split, which always has some.

    Raises:
      InputError: the files were deleted.
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


def read(dataset: tf.data.Dataset, files: Sequence[str]) -> Iterator[Any]:
    """Yield the elements of a dataset of `files`, as eager tensors in its structure.

    Raises:
      InputError: a file is damaged.
      tensorflow.errors.OpError: a file cannot be read.
    """
    with report_damaged_file(files):
        yield from without_autotune(dataset)


def read_sample(folder: str, size: int) -> list[bytes]:
    """Return a random sample of the serialized Examples in the gzipped TFRecords of a folder.

    The Examples with the smallest hash are sampled, so that a sorted input makes no difference, and
    every call returns the same ones. Memory grows with `size`, not with the split.

    Raises:
      InputError: the files were deleted, or one of them is damaged.
      tensorflow.errors.OpError: a file cannot be read.
    """
    files = example_files(folder)
    examples = (
        example for batch in read(batches(files, _BATCH), files) for example in batch.numpy()
    )
    return heapq.nsmallest(size, examples, key=zlib.crc32)


@contextlib.contextmanager
def report_damaged_file(files: Iterable[str]) -> Iterator[None]:
    """Name the damaged one of some gzipped TFRecord files, if the context fails because of it.

    The error of TensorFlow does not name it.

    Raises:
      InputError: a file is damaged.
      tensorflow.errors.DataLossError: the context failed by damaged data, but no file is damaged.
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
    """Return `function(file)` of each file, computed in threads; raise what it raises."""
    with ThreadPoolExecutor(_OPENED_AT_ONCE) as pool:
        return list(pool.map(function, files))


def without_autotune(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Return the dataset without autotuning.

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
