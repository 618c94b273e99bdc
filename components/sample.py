"""A sample of the Examples of a split."""

from __future__ import annotations

import heapq
import zlib
from typing import NamedTuple

import tensorflow as tf

from components.examples import example_files
from trainer_module.inputs.autotune import without_autotune

_BATCH = 1024


class Sample(NamedTuple):
    """Examples of a split.

    Attributes:
      examples: serialized tf.Examples.
      total: number of Examples in the split.
    """

    examples: list[bytes]
    total: int


def read_sample(folder: str, size: int) -> Sample:
    """Return a random sample of the Examples in the gzipped TFRecords of a folder.

    The Examples with the smallest hash are sampled, so that a sorted input makes no difference, and
    every call returns the same ones. Memory grows with `size`, not with the split.

    Raises:
      InputError: see `example_files`.
    """
    records = tf.data.TFRecordDataset(example_files(folder), compression_type="GZIP")
    kept: list[tuple[int, int, bytes]] = []
    total = 0
    for batch in without_autotune(records.batch(_BATCH)).as_numpy_iterator():
        for record in batch:
            # The heap has the greatest hash on top.
            item = (-zlib.crc32(record), -total, record)
            if len(kept) < size:
                heapq.heappush(kept, item)
            elif item > kept[0]:
                heapq.heapreplace(kept, item)
            total += 1
    examples = [record for *_, record in sorted(kept, reverse=True)]
    return Sample(examples, total)
