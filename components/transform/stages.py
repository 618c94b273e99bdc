"""The Beam stages of Transform, which read Examples, and write transformed Examples."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import apache_beam as beam
import pyarrow as pa
import tensorflow as tf
import tensorflow_transform as tft
from apache_beam.io.filesystems import FileSystems
from tensorflow_metadata.proto.v0 import schema_pb2
from tfx_bsl.coders import example_coder
from tfx_bsl.tfxio.tensor_to_arrow import TensorsToRecordBatchConverter

from components.examples import batches, read
from components.tfrecords import ID_LEVEL, ShardWriter, cores
from core.progress import Progress
from trainer_module.inputs import stored

_BATCH = 1024
_ANALYZED_BATCH = 32_768
"""Size of a batch for analyzers. A vocabulary is counted in each batch, and Beam then sums the
counts of single words, so large batches reduce Beam's work."""

_UNITS_AT_ONCE = 2

Unit = tuple[str, int, Sequence[str]]
"""A split, the number of the unit in the split, and its files."""
Done = tuple[str, list[tuple[str, int]], str | None]
"""A split; its complete files that are not published yet, each with its number of Examples; and the
file with their counts by class, if they were counted."""


class ReadBatches(beam.DoFn):
    """Files of serialized Examples -> RecordBatches of the features of a schema."""

    def __init__(self, schema: schema_pb2.Schema):
        self._schema = schema

    def setup(self) -> None:
        self._decoder = example_coder.ExamplesToRecordBatchDecoder(self._schema.SerializeToString())

    def process(self, files: list[str]) -> Iterator[pa.RecordBatch]:
        for batch in read(batches(files, _ANALYZED_BATCH).prefetch(1), files):
            yield self._decoder.DecodeBatch(batch.numpy())


class TransformFiles(beam.DoFn):
    """Some units (split, number, files) -> a Done with the transformed files for each.

    Two units are transformed at a time, because a unit takes a second until its first batch.

    Args:
      graph: the folder of the transform graph.
      spec: the parsing spec of the raw features.
      scratch: the folder for the files.
      config: the `custom_config` of `preprocessing_fn`.
      counted: the splits that are counted by class.
    """

    def __init__(
        self,
        graph: str,
        spec: dict[str, Any],
        scratch: str,
        config: Mapping[str, Any],
        counted: Collection[str],
    ):
        self._graph, self._spec, self._scratch = graph, spec, scratch
        self._config, self._counted = config, counted

    def setup(self) -> None:
        self._layer = tft.TFTransformOutput(self._graph).transform_features_layer()

    def process(self, units: Sequence[Unit]) -> Iterator[Done]:
        with ThreadPoolExecutor(_UNITS_AT_ONCE) as pool:
            yield from pool.map(self._result, units)

    def _result(self, unit: Unit) -> Done:
        split, number, files = unit
        transformed = batches(files, _BATCH).map(self._transform, cores(), deterministic=True)
        converter = TensorsToRecordBatchConverter(transformed.element_spec)
        encoder = example_coder.RecordBatchToExamplesEncoder()
        # The name is unique, so a bundle that Beam retries leaves only unused files.
        name = FileSystems.join(self._scratch, f"{split}-{number:05d}-{uuid.uuid4().hex}")
        counter = stored.ClassCounter.of(self._config) if split in self._counted else None
        with (
            ThreadPoolExecutor(1) as pool,
            Progress("reviews", f"{split} {number}") as progress,
        ):
            writers = [
                ShardWriter(f"{name}-{index:03d}.gz", ID_LEVEL, pool) for index in range(len(files))
            ]
            for index, tensors in enumerate(read(transformed.prefetch(2), files)):
                examples = encoder.encode(converter.convert(tensors))
                writers[index % len(writers)].write(examples)
                if counter:
                    counter.add(tensors)
                progress.advance(len(examples))
            for writer in writers:
                writer.close()
        counted = None
        if counter:
            counted = f"{name}-classes.npz"
            counter.save(counted)
        return split, [(writer.path, writer.count) for writer in writers], counted

    # AutoGraph takes seconds, and has nothing to convert: the layer is a graph already.
    @tf.autograph.experimental.do_not_convert
    def _transform(self, serialized: tf.Tensor) -> dict[str, Any]:
        return dict(self._layer(tf.io.parse_example(serialized, self._spec)))
