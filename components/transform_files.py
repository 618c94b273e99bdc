"""The stage of Transform that applies the graph to files of Examples, and writes new ones."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import apache_beam as beam
import tensorflow as tf
from apache_beam.io.filesystems import FileSystems
from tfx_bsl.coders import example_coder

from components.transform_batches import BatchTransformer, TransformedBatch
from core.progress import Progress
from examples.counts import ClassCounter, check_labels
from examples.tfrecords import batches_of_files, numbered_batches
from examples.writer import ID_LEVEL, ShardWriter
from preprocessing.labels import Labels
from preprocessing.settings import TransformConfig

TRANSFORMED = "texts transformed"
"""The unit of the progress."""
_BATCH = 1024
_UNITS_AT_ONCE = 2


class TransformUnit(NamedTuple):
    """Files of a split that one worker transforms.

    Attributes:
      split: the split.
      number: the number of the unit in the split.
      files: its files.
    """

    split: str
    number: int
    files: Sequence[str]


class TransformedUnit(NamedTuple):
    """A unit that was transformed. JSON represents it as a list.

    Attributes:
      split: see `TransformUnit`.
      number: see `TransformUnit`.
      shards: the path and the number of Examples of each finished file, which is not published yet.
      classes: the paths of the counts by class, one for the unit, or one for each file if the files
        are transformed apart; none if the classes were not counted.
    """

    split: str
    number: int
    shards: Sequence[tuple[str, int]]
    classes: Sequence[str]


class TransformFiles(beam.DoFn):
    """A Beam stage that transforms the files of units, and yields a `TransformedUnit` for each.

    Two units are transformed at a time, because the graph is traced for the first batch of each.

    Args:
      graph: the folder of the transform graph.
      spec: the parsing spec of the raw features.
      scratch: the folder for the transformed files.
      config: the custom config of Transform.
      counted: the splits whose reviews are counted by class.
      labels: the classes.
      compiled: the features that compiled code computes, see `BatchTransformer`.
      is_apart: whether each file is transformed to a file of its own, with counts of its own.
        Otherwise the batches of a unit are dealt out to its files.
    """

    def __init__(
        self,
        graph: str,
        spec: dict[str, Any],
        scratch: str,
        config: TransformConfig,
        counted: Collection[str],
        labels: Labels,
        compiled: Collection[str],
        is_apart: bool,
    ):
        self._labels, self._compiled, self._is_apart = labels, compiled, is_apart
        self._graph, self._spec, self._scratch = graph, spec, scratch
        self._config, self._counted = config, counted

    def setup(self) -> None:
        self._transformer = BatchTransformer(self._graph, self._spec, self._config, self._compiled)

    def process(self, units: Sequence[TransformUnit]) -> Iterator[TransformedUnit]:
        with ThreadPoolExecutor(_UNITS_AT_ONCE) as pool:
            yield from pool.map(self._result, units)

    def _result(self, unit: TransformUnit) -> TransformedUnit:
        split, number, files = unit
        source = batches_of_files if self._is_apart else numbered_batches
        encoder = example_coder.RecordBatchToExamplesEncoder()
        # The name is unique, so a bundle that Beam retries leaves only unused files.
        name = FileSystems.join(self._scratch, f"{split}-{number:05d}-{uuid.uuid4().hex}")
        counts = _Counts(name, self._new_counter) if split in self._counted else None
        with (
            # TensorFlow deserializes the sparse tensors of a dataset on a GPU, where two threads at
            # a time got each other's values (TensorFlow 2.21, H200).
            tf.device("/CPU:0"),
            ThreadPoolExecutor(1) as pool,
            Progress(TRANSFORMED, f"{split} {number}") as progress,
        ):
            writers = [
                ShardWriter(f"{name}-{index:03d}.gz", ID_LEVEL, pool) for index in range(len(files))
            ]
            for at, batch in self._transformer.transform(source(files, _BATCH), files):
                examples = encoder.encode(batch.records)
                writer = at % len(writers)
                writers[writer].write(examples)
                if counts:
                    counts.add(writer if self._is_apart else 0, batch)
                else:
                    check_labels(batch.labels, self._labels.number)
                progress.advance(len(examples))
            for each in writers:
                each.close()
        counted = counts.close(len(files) if self._is_apart else 1) if counts else []
        shards = [(each.path, each.count) for each in writers]
        return TransformedUnit(split, number, shards, counted)

    def _new_counter(self) -> ClassCounter:
        return ClassCounter.for_transform(self._config, self._labels)


class _Counts:
    """The counts by class of several files, which are counted one after the other.

    Args:
      name: the beginning of the paths of the files with the counts.
      new_counter: returns a new counter. Its table may be large, so there is one at a time.
    """

    def __init__(self, name: str, new_counter: Callable[[], ClassCounter]):
        self._name, self._new_counter = name, new_counter
        self._counter = new_counter()
        self._saved: list[str] = []

    def add(self, number: int, batch: TransformedBatch) -> None:
        """Count a batch.

        Args:
          number: the number of its file, not less than that of the batch before.
          batch: the batch.

        Raises:
          InputError: a label is the index of no class.
        """
        self._save_until(number)
        self._counter.add(batch.labels, batch.ngrams)

    def close(self, number: int) -> list[str]:
        """Return the paths of the counts of `number` files."""
        self._save_until(number)
        return self._saved

    def _save_until(self, number: int) -> None:
        while len(self._saved) < number:
            path = f"{self._name}-{len(self._saved):03d}.npz"
            self._counter.save(path)
            self._saved.append(path)
            self._counter = self._new_counter()
