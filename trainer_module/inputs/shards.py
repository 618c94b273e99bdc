"""The order in which a pass over a shard reads its Examples, and the remainder of such a pass.

Most of the cost of an Example in tf.data is a cost per element. So blocks of 16 consecutive
Examples are read and shuffled as one element; the effect on batches of hundreds is negligible. The
position of a block in a pass depends on the seed, the number of the pass and the number of blocks
in each file, but not on the content of the blocks. So the remainder of a pass can be created
without reading the blocks before it: empty blocks take their positions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

BLOCK = 16
"""Examples in a block."""
_FILES_AT_ONCE = 8
_PLACES_AT_ONCE = 1 << 14


@dataclass(frozen=True)
class Shard:
    """The part of a split that one process reads.

    Attributes:
      files: the files to read.
      counts: the number of Examples of the shard in each file.
      index, of: in each file, the shard is every `of`-th Example, starting at `index`.
    """

    files: tuple[str, ...]
    counts: tuple[int, ...]
    index: int = 0
    of: int = 1

    @property
    def examples(self) -> int:
        return sum(self.counts)


class Reader:
    """Passes over a shard as blocks of serialized Examples, string [BLOCK] or shorter.

    With a `shuffle_buffer` each pass reads the files in another order, and shuffles with a buffer
    of about this many Examples; with 0 it reads in order.
    """

    def __init__(self, shard: Shard, shuffle_buffer: int, seed: int):
        self._shard = shard
        self._buffer = shuffle_buffer and max(1, shuffle_buffer // BLOCK)
        self._seed = seed
        self._blocks = np.array([-(-count // BLOCK) for count in shard.counts], np.int64)

    @property
    def shuffles(self) -> bool:
        """Whether the passes differ in their order."""
        return bool(self._buffer)

    def seeds(self, number: Any) -> tf.Tensor:
        """Return the seeds of pass `number`, int64 [3]: for files, for blocks, for batches."""
        return tf.random.stateless_uniform(
            [3], tf.stack([self._seed, tf.cast(number, tf.int64)]), 0, tf.int64.max, tf.int64
        )

    def whole(self, number: Any) -> tf.data.Dataset:
        """Return pass `number`, a scalar int64 tensor or an int."""
        seeds = self.seeds(number)
        return self._shuffled(self._read(seeds[0], 0 * self._blocks), seeds)

    def rest(self, number: int, examples: int) -> tf.data.Dataset:
        """Return pass `number` without its first `examples` Examples; call this eagerly.

        Files that contain only skipped Examples are not opened. Other files are read from their
        start, because they are compressed, and their skipped Examples are discarded.
        """
        seeds = self.seeds(number)
        order = self._order(seeds)
        files = np.repeat(np.arange(len(self._blocks)), self._blocks)[order]
        places = (order - (np.cumsum(self._blocks) - self._blocks)[files]).astype(np.int64)
        counts = np.array(self._shard.counts, np.int64)
        ends = np.cumsum(np.minimum(BLOCK, counts[files] - BLOCK * places))
        done = int(np.searchsorted(ends, examples, side="right"))
        first = self._blocks.copy()
        np.minimum.at(first, files[done:], places[done:])
        blocks = self._shuffled(self._read(seeds[0], first), seeds).skip(done)
        begun = examples - (int(ends[done - 1]) if done else 0)
        if not begun:
            return blocks
        return blocks.enumerate().map(lambda place, block: block[begun if place == 0 else 0 :])

    def _shuffled(self, blocks: tf.data.Dataset, seeds: tf.Tensor) -> tf.data.Dataset:
        if not self._buffer:
            return blocks
        return blocks.shuffle(self._buffer, seed=seeds[1], reshuffle_each_iteration=False)

    def _order(self, seeds: tf.Tensor) -> np.ndarray:
        """Return the numbers of all blocks in the order of a pass, counted over the files."""
        first = tf.constant(np.cumsum(self._blocks) - self._blocks)
        counts = tf.constant(self._blocks)
        read = self._interleaved(
            seeds[0],
            lambda file: tf.data.Dataset.range(first[file], first[file] + counts[file]),
        )
        places = self._shuffled(read, seeds).batch(_PLACES_AT_ONCE)
        return np.concatenate([np.zeros([0], np.int64), *places.as_numpy_iterator()])

    def _read(self, seed: tf.Tensor, first: np.ndarray) -> tf.data.Dataset:
        """Return the blocks in reading order; in each file, those before `first` are empty."""
        shard = self._shard
        names = tf.constant(shard.files, tf.string)
        skipped, counts = tf.constant(first), tf.constant(self._blocks)

        def blocks(file: tf.Tensor) -> tf.data.Dataset:
            # If all blocks are skipped there is no name, and no file is opened.
            name = tf.boolean_mask(names[file][tf.newaxis], [skipped[file] < counts[file]])
            examples = tf.data.TFRecordDataset(name, compression_type="GZIP")
            if shard.of > 1:
                examples = examples.shard(shard.of, shard.index)
            if not first.any():
                return examples.batch(BLOCK)
            empty = tf.data.Dataset.from_tensors(tf.zeros([0], tf.string)).repeat(skipped[file])
            return empty.concatenate(examples.skip(BLOCK * skipped[file]).batch(BLOCK))

        return self._interleaved(seed, blocks)

    def _interleaved(self, seed: tf.Tensor, of_file: Any) -> tf.data.Dataset:
        files = tf.data.Dataset.range(len(self._shard.files))
        if self._buffer:
            files = files.shuffle(len(self._shard.files), seed=seed, reshuffle_each_iteration=False)
        return files.interleave(
            of_file,
            cycle_length=_FILES_AT_ONCE,
            num_parallel_calls=tf.data.AUTOTUNE,
            deterministic=True,
        )
