"""The Examples of a split: their files, batches of them, a sample."""

from __future__ import annotations

import heapq
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import tensorflow as tf
from tfx import types
from tfx.types import artifact_utils

from core.errors import InputError
from core.files import damage_named, list_files
from trainer_module.inputs.batches import without_autotune

SAMPLE_SIZE = 1000
"""Test Examples whose predictions the Evaluator stores and ServingCheck compares, at most."""
_BATCH = 1024
_FILES_AT_ONCE = 2


def example_files(folder: str) -> list[str]:
    """Return the sorted TFRecord files in the folder of a split, which always has some.

    Raises:
      InputError: the files were deleted.
    """
    files = list_files(folder)
    if not files:
        raise InputError(
            f"{folder}: the Examples were deleted, although ML Metadata lists them; run once with "
            "--set cache=false to write them again"
        )
    return files


def split_files(examples: list[types.Artifact], splits: Iterable[str]) -> list[str]:
    """Return the files of some splits of Examples artifacts; see `example_files`."""
    folders = [uri for split in splits for uri in artifact_utils.get_split_uris(examples, split)]
    return sorted(path for folder in folders for path in example_files(folder))


def batches(files: Sequence[str], size: int) -> tf.data.Dataset:
    """Return batches of the serialized Examples of files, always in the same order."""
    return tf.data.Dataset.from_tensor_slices(list(files)).interleave(
        lambda file: tf.data.TFRecordDataset(file, compression_type="GZIP").batch(size),
        cycle_length=_FILES_AT_ONCE,
        num_parallel_calls=_FILES_AT_ONCE,
        deterministic=True,
    )


def read(dataset: tf.data.Dataset, files: Sequence[str]) -> Iterator[Any]:
    """Yield the elements of a dataset of `files`.

    Raises:
      InputError: a file is damaged.
    """
    with damage_named(files):
        yield from without_autotune(dataset)


def read_sample(folder: str, size: int) -> list[bytes]:
    """Return a random sample of the serialized Examples in the gzipped TFRecords of a folder.

    The Examples with the smallest hash are sampled, so that a sorted input makes no difference, and
    every call returns the same ones. Memory grows with `size`, not with the split.

    Raises:
      InputError: see `example_files` and `read`.
    """
    files = example_files(folder)
    examples = (
        example for batch in read(batches(files, _BATCH), files) for example in batch.numpy()
    )
    return heapq.nsmallest(size, examples, key=zlib.crc32)
