"""The order in which a pass over a share reads its Examples, and the rest of such a pass.

What an Example costs on its way through tf.data is mostly a price per element, so blocks of a few
neighbours are read and shuffled as one; 16 neighbours more in a batch of hundreds change nothing.
A block's place in a pass follows from the seed, the number of the pass and the number of blocks in
each file, and from nothing that the blocks hold. So the rest of a pass is made without reading what
came before it: empty blocks take the places of those that are done.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

BLOCK = 16
"""Examples."""
_FILES_AT_ONCE = 8
_PLACES_AT_ONCE = 1 << 14


@dataclass(frozen=True)
class Share:
    """What one process reads of a split: of each of `files` every `of`-th Example from `index`.

    `counts` says how many Examples that are of each file.
    """

    files: tuple[str, ...]
    counts: tuple[int, ...]
    index: int = 0
    of: int = 1

    @property
    def examples(self) -> int:
        return sum(self.counts)


class Reader:
    """Passes over a share as blocks: string [BLOCK] or less, serialized Examples.

    Args:
      share: what to read.
      shuffle_buffer: 0 reads in order; otherwise each pass reads the files in an order of its own,
        and about this many Examples are mixed.
      seed: of the shuffling.
      cache: the first pass keeps the Examples in memory, and the later ones read no file; they
        come in the first one's order of files.
    """

    def __init__(self, share: Share, shuffle_buffer: int, seed: int, cache: bool):
        self._share = share
        self._buffer = shuffle_buffer and max(1, shuffle_buffer // BLOCK)
        self._seed = seed
        self._blocks = np.array([-(-count // BLOCK) for count in share.counts], np.int64)
        self._cached = self._read(self.seeds(0)[0], 0 * self._blocks).cache() if cache else None

    @property
    def shuffles(self) -> bool:
        """Whether the passes differ."""
        return bool(self._buffer)

    def seeds(self, number: Any) -> tf.Tensor:
        """int64 [3], for pass `number`: of the files, the blocks and what is made of them."""
        return tf.random.stateless_uniform(
            [3], tf.stack([self._seed, tf.cast(number, tf.int64)]), 0, tf.int64.max, tf.int64
        )

    def whole(self, number: Any) -> tf.data.Dataset:
        """Pass `number`, a scalar int64 tensor or an int."""
        seeds = self.seeds(number)
        if self._cached is not None:
            return self._shuffled(self._cached, seeds)
        return self._shuffled(self._read(seeds[0], 0 * self._blocks), seeds)

    def rest(self, number: int, examples: int) -> tf.data.Dataset:
        """Pass `number` without its first `examples` Examples; to be called eagerly.

        A file that is done is not opened. One that is begun is read from its start, because it is
        compressed, but what is done of it is not handed on.
        """
        seeds = self.seeds(number)
        order = self._order(seeds)
        files = np.repeat(np.arange(len(self._blocks)), self._blocks)[order]
        places = (order - (np.cumsum(self._blocks) - self._blocks)[files]).astype(np.int64)
        counts = np.array(self._share.counts, np.int64)
        ends = np.cumsum(np.minimum(BLOCK, counts[files] - BLOCK * places))
        done = int(np.searchsorted(ends, examples, side="right"))
        if self._cached is not None:
            blocks = self._cached
        else:
            first = self._blocks.copy()
            np.minimum.at(first, files[done:], places[done:])
            blocks = self._read(seeds[0], first)
        blocks = self._shuffled(blocks, seeds).skip(done)
        begun = examples - (int(ends[done - 1]) if done else 0)
        if not begun:
            return blocks
        return blocks.enumerate().map(lambda place, block: block[begun if place == 0 else 0 :])

    def _shuffled(self, blocks: tf.data.Dataset, seeds: tf.Tensor) -> tf.data.Dataset:
        if not self._buffer:
            return blocks
        return blocks.shuffle(self._buffer, seed=seeds[1], reshuffle_each_iteration=False)

    def _order(self, seeds: tf.Tensor) -> np.ndarray:
        """The numbers of all blocks, counted from the first file's on, as a pass has them."""
        first = tf.constant(np.cumsum(self._blocks) - self._blocks)
        counts = tf.constant(self._blocks)
        read = self._interleaved(
            self.seeds(0)[0] if self._cached is not None else seeds[0],
            lambda file: tf.data.Dataset.range(first[file], first[file] + counts[file]),
        )
        places = self._shuffled(read, seeds).batch(_PLACES_AT_ONCE)
        return np.concatenate([np.zeros([0], np.int64), *places.as_numpy_iterator()])

    def _read(self, seed: tf.Tensor, first: np.ndarray) -> tf.data.Dataset:
        """The blocks as they are read; those of each file before its `first` one are empty."""
        share = self._share
        names = tf.constant(share.files, tf.string)
        skipped, counts = tf.constant(first), tf.constant(self._blocks)

        def blocks(file: tf.Tensor) -> tf.data.Dataset:
            # No name, and nothing is opened, where all is done.
            name = tf.boolean_mask(names[file][tf.newaxis], [skipped[file] < counts[file]])
            examples = tf.data.TFRecordDataset(name, compression_type="GZIP")
            if share.of > 1:
                examples = examples.shard(share.of, share.index)
            if not first.any():
                return examples.batch(BLOCK)
            empty = tf.data.Dataset.from_tensors(tf.zeros([0], tf.string)).repeat(skipped[file])
            return empty.concatenate(examples.skip(BLOCK * skipped[file]).batch(BLOCK))

        return self._interleaved(seed, blocks)

    def _interleaved(self, seed: tf.Tensor, of_file: Any) -> tf.data.Dataset:
        files = tf.data.Dataset.range(len(self._share.files))
        if self._buffer:
            files = files.shuffle(len(self._share.files), seed=seed, reshuffle_each_iteration=False)
        return files.interleave(
            of_file,
            cycle_length=_FILES_AT_ONCE,
            num_parallel_calls=tf.data.AUTOTUNE,
            deterministic=True,
        )
