"""Encode reviews and write them into the shards of a unit."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from components.review_example_gen import splits
from components.tfrecords import TEXT_LEVEL, ShardWriter
from preprocessing.fast.encode import encode_examples


class Shards:
    """The open shards of a unit. The text of a review decides its shard."""

    def __init__(self, name: str, count: int, pool: ThreadPoolExecutor):
        """Open no file yet.

        Args:
          name: the beginning of every shard's path.
          count: shards of each split.
          pool: the threads that compress.
        """
        self._name, self._count, self._pool = name, count, pool
        self._open: dict[tuple[str, int], ShardWriter] = {}

    def write(self, routed: splits.Routed, chosen: np.ndarray, counts: Counter[str]) -> None:
        """Write the reviews of a batch for which the mask `chosen` is true, and count them."""
        batch = routed.batch
        examples = encode_examples(batch.labels, batch.texts, batch.titles, batch.bodies)
        shard = (routed.keys >> np.uint64(8)) % np.uint64(self._count)
        for split in splits.SPLITS:
            of_split = chosen & (routed.split == split)
            number = int(np.count_nonzero(of_split))
            if not number:
                continue
            counts[f"examples/{split}"] += number
            for index in range(self._count):
                here = np.flatnonzero(of_split & (shard == index))
                if not len(here):
                    continue
                if (split, index) not in self._open:
                    path = f"{self._name}-{split}-{index:03d}.gz"
                    self._open[split, index] = ShardWriter(path, TEXT_LEVEL, self._pool)
                self._open[split, index].write([examples[i] for i in here.tolist()])

    def close(self) -> tuple[tuple[str, str], ...]:
        """Close all shards; return split and path of each."""
        for writer in self._open.values():
            writer.close()
        return tuple((split, writer.path) for (split, _), writer in sorted(self._open.items()))
