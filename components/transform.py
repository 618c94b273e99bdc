"""ReviewTransform: TFX's Transform with an executor of our own, which writes the same artifacts.

TFX's own executor passes single records between Beam stages, which has a cost for each record, and
tf.Transform batches them again. Here a batch remains a batch from the input file to the output
file, and TensorFlow's threads read, parse and transform it.

`TransformExecutor._analyze` uses private parts of TensorFlow Transform 1.16 and 1.21:
`tft_beam.AnalyzeDataset` starts Beam, which takes five seconds, even for a `preprocessing_fn`
without analyzers, whose graph does not depend on data. There is no public function that detects
analyzers, or that writes such a graph without Beam.
"""

from __future__ import annotations

import os
import uuid
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import apache_beam as beam
import pyarrow as pa
import tensorflow as tf
import tensorflow_transform as tft
import tensorflow_transform.beam as tft_beam
import tfx.components
from apache_beam.io.filesystems import FileSystems
from tensorflow_metadata.proto.v0 import schema_pb2
from tensorflow_transform import analyzer_nodes, impl_helper
from tensorflow_transform.tf_metadata import dataset_metadata, metadata_io, schema_utils
from tfx import types
from tfx.components.transform import executor_utils
from tfx.components.util import udf_utils
from tfx.dsl.components.base import executor_spec
from tfx.dsl.io import fileio
from tfx.types import artifact_utils
from tfx.types.standard_component_specs import (
    CUSTOM_CONFIG_KEY,
    EXAMPLES_KEY,
    PREPROCESSING_FN_KEY,
    SCHEMA_KEY,
    SPLITS_CONFIG_KEY,
    TRANSFORM_GRAPH_KEY,
    TRANSFORMED_EXAMPLES_KEY,
)
from tfx.utils import json_utils
from tfx_bsl.coders import example_coder
from tfx_bsl.public import tfxio
from tfx_bsl.tfxio.tensor_to_arrow import TensorsToRecordBatchConverter

from components.beam import LocalBeamExecutor, divide_into_units, read_results, write_results
from components.examples import publish, split_files
from components.schema_gen import read_schema
from core.machine import cores
from core.progress import Progress, report, report_stage
from examples import digest
from examples.counts import ClassCounter, check_labels, count_examples, write_class_counts
from examples.tfrecords import batches, read
from examples.writer import ID_LEVEL, ShardWriter
from preprocessing.features import LABEL
from preprocessing.labels import Labels, read_labels, write_labels

_FILE_PREFIX = "transformed_examples"
_DECIDING = (PREPROCESSING_FN_KEY, CUSTOM_CONFIG_KEY, SPLITS_CONFIG_KEY, "code")
"""The execution properties that determine the output. The pipeline adds `code`."""
_BATCH = 1024
_ANALYZED_BATCH = 32_768
"""Size of a batch for analyzers. A vocabulary is counted in each batch, and Beam then sums the
counts of single words, so large batches reduce Beam's work."""

_TRANSFORMED = "texts transformed"
"""The unit of the progress."""
_UNITS_AT_ONCE = 2
_UNITS_PER_ELEMENT = 4

TransformUnit = tuple[str, int, Sequence[str]]
"""A split, the number of the unit in the split, and its files."""
TransformedUnit = tuple[str, list[tuple[str, int]], str | None]
"""A split; the (path, number of Examples) of each finished file, which is not published yet; and
the path of the counts by class, or None if the classes were not counted."""
PreprocessingFn = Callable[[Any], dict[str, Any]]
"""A function from raw features to transformed ones, see `preprocessing.transform`."""


def _read_batches(files: list[str], schema: schema_pb2.Schema) -> Iterator[pa.RecordBatch]:
    decoder = example_coder.ExamplesToRecordBatchDecoder(schema.SerializeToString())
    for batch in read(batches(files, _ANALYZED_BATCH).prefetch(1), files):
        yield decoder.DecodeBatch(batch.numpy())


class TransformFiles(beam.DoFn):
    """A Beam stage that transforms the files of units, and yields a `TransformedUnit` for each.

    Two units are transformed at a time, because the first batch of a unit takes a second.

    Args:
      graph: the folder of the transform graph.
      spec: the parsing spec of the raw features.
      scratch: the folder for the transformed files.
      config: the custom config of Transform.
      counted: the splits whose reviews are counted by class.
      labels: the classes.
    """

    def __init__(
        self,
        graph: str,
        spec: dict[str, Any],
        scratch: str,
        config: Mapping[str, Any],
        counted: Collection[str],
        labels: Labels,
    ):
        self._labels = labels
        self._graph, self._spec, self._scratch = graph, spec, scratch
        self._config, self._counted = config, counted

    def setup(self) -> None:
        self._layer = tft.TFTransformOutput(self._graph).transform_features_layer()

    def process(self, units: Sequence[TransformUnit]) -> Iterator[TransformedUnit]:
        with ThreadPoolExecutor(_UNITS_AT_ONCE) as pool:
            yield from pool.map(self._result, units)

    def _result(self, unit: TransformUnit) -> TransformedUnit:
        split, number, files = unit
        transformed = batches(files, _BATCH).map(self._transform, cores(), deterministic=True)
        converter = TensorsToRecordBatchConverter(transformed.element_spec)
        encoder = example_coder.RecordBatchToExamplesEncoder()
        # The name is unique, so a bundle that Beam retries leaves only unused files.
        name = FileSystems.join(self._scratch, f"{split}-{number:05d}-{uuid.uuid4().hex}")
        counter = (
            ClassCounter.for_transform(self._config, self._labels)
            if split in self._counted
            else None
        )
        with (
            # TensorFlow deserializes the sparse tensors of a dataset on a GPU, where two threads at
            # a time got each other's values (TensorFlow 2.21, H200).
            tf.device("/CPU:0"),
            ThreadPoolExecutor(1) as pool,
            Progress(_TRANSFORMED, f"{split} {number}") as progress,
        ):
            writers = [
                ShardWriter(f"{name}-{index:03d}.gz", ID_LEVEL, pool) for index in range(len(files))
            ]
            for index, tensors in enumerate(read(transformed.prefetch(2), files)):
                examples = encoder.encode(converter.convert(tensors))
                writers[index % len(writers)].write(examples)
                if counter:
                    counter.add(tensors)
                else:
                    check_labels(tensors[LABEL].numpy(), self._labels.number)
                progress.advance(len(examples))
            for writer in writers:
                writer.close()
        counted = None
        if counter:
            counted = f"{name}-classes.npz"
            counter.save(counted)
        return split, [(writer.path, writer.count) for writer in writers], counted

    # AutoGraph would take seconds, and the layer is a graph already.
    @tf.autograph.experimental.do_not_convert
    def _transform(self, serialized: tf.Tensor) -> dict[str, Any]:
        return dict(self._layer(tf.io.parse_example(serialized, self._spec)))


class TransformExecutor(LocalBeamExecutor):
    """The executor that writes the transform graph, and transforms the Examples with it.

    `Do` raises an InputError if the Examples were deleted, if a file of them is damaged, or if the
    label of an Example is the index of no class.
    """

    def Do(
        self,
        input_dict: dict[str, list[types.Artifact]],
        output_dict: dict[str, list[types.Artifact]],
        exec_properties: dict[str, Any],
    ) -> None:
        self._log_startup(input_dict, output_dict, exec_properties)
        examples, schema = input_dict[EXAMPLES_KEY], read_schema(input_dict[SCHEMA_KEY])
        [graph] = output_dict[TRANSFORM_GRAPH_KEY]
        [transformed] = output_dict[TRANSFORMED_EXAMPLES_KEY]
        splits = executor_utils.ResolveSplitsConfig(
            exec_properties.get(SPLITS_CONFIG_KEY), examples
        )
        config = json_utils.loads(exec_properties[CUSTOM_CONFIG_KEY])
        fn = partial(udf_utils.get_fn(exec_properties, PREPROCESSING_FN_KEY), custom_config=config)
        scratch = os.path.join(transformed.uri, "unpublished")
        fileio.makedirs(scratch)
        labels = read_labels(artifact_utils.get_single_uri(examples))
        report_stage("analyzing the train split")
        self._analyze(fn, schema, split_files(examples, splits.analyze), graph.uri, scratch)
        write_labels(graph.uri, labels)
        units = [
            (split, number, files)
            for split in splits.transform
            for number, files in enumerate(divide_into_units(split_files(examples, [split])))
        ]
        # A model is fitted to the splits that are analyzed, and uses their counts by class.
        spec = schema_utils.schema_as_feature_spec(schema).feature_spec
        report(_TRANSFORMED, 0, sum(count_examples([path for unit in units for path in unit[2]])))
        stage = TransformFiles(graph.uri, spec, scratch, config, list(splits.analyze), labels)
        with self._make_beam_pipeline() as pipeline:
            done = (
                pipeline
                | "Units"
                >> beam.Create(divide_into_units(units, _UNITS_PER_ELEMENT), reshuffle=True)
                | "TransformFiles" >> beam.ParDo(stage)
            )
            write_results(pipeline, done, scratch)
        _publish(transformed, splits.transform, read_results(scratch))
        fileio.rmtree(scratch)
        digest.write_digest(
            transformed.uri,
            split_files(examples, sorted({*splits.analyze, *splits.transform})),
            [str(exec_properties.get(key)) for key in _DECIDING],
        )

    def _analyze(
        self,
        fn: PreprocessingFn,
        schema: schema_pb2.Schema,
        files: list[str],
        graph: str,
        scratch: str,
    ) -> None:
        """Write the transform graph, with the metadata of the raw features.

        Args:
          fn: the `preprocessing_fn` whose graph is written.
          schema: the schema of the raw features.
          files: the files of Examples for the analyzers of `fn`.
          graph: the folder of the graph.
          scratch: the folder for temporary files of the analysis.
        """
        metadata = dataset_metadata.DatasetMetadata(schema)
        metadata_io.write_metadata(
            metadata, os.path.join(graph, tft.TFTransformOutput.RAW_METADATA_DIR)
        )
        source = tfxio.TFExampleBeamRecord("tfrecords_gzip", schema=schema)
        specs = source.TensorAdapter().OriginalTypeSpecs()
        traced, _, _ = impl_helper.trace_preprocessing_function(fn, specs, use_tf_compat_v1=False)
        if not traced.get_collection(analyzer_nodes.TENSOR_REPLACEMENTS):
            feature_spec = schema_utils.schema_as_feature_spec(schema).feature_spec
            impl_helper.analyze_in_place(fn, False, feature_spec, specs, graph)
            return
        with (
            self._make_beam_pipeline() as pipeline,
            tft_beam.Context(temp_dir=scratch, use_deep_copy_optimization=True),
        ):
            analyzed = (
                pipeline
                | "AnalyzedFiles" >> beam.Create(divide_into_units(files), reshuffle=True)
                | "ReadBatches" >> beam.FlatMap(_read_batches, schema)
            )
            config = source.TensorAdapterConfig()
            transform_fn = (analyzed, config) | tft_beam.AnalyzeDataset(fn)
            _ = transform_fn | tft_beam.WriteTransformFn(graph)


class ReviewTransform(tfx.components.Transform):
    """TFX's Transform with an executor that keeps Examples in batches.

    The outputs are `transform_graph` and `transformed_examples`. Set `disable_statistics` and
    `disable_analyzer_cache`, because the executor has neither statistics nor an analyzer cache.
    """

    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(TransformExecutor)


def _publish(
    transformed: types.Artifact, splits: Iterable[str], done: list[TransformedUnit]
) -> None:
    """Move the transformed files to the folders of their splits, and write their counts by class.

    Args:
      transformed: the artifact of the transformed Examples.
      splits: the names of its splits.
      done: the results of the units, in any order.
    """
    files: dict[str, list[tuple[str, int]]] = {split: [] for split in splits}
    counted = defaultdict(list)
    for split, shards, classes in done:
        files[split] += shards
        if classes:
            counted[f"Split-{split}"].append(classes)
    publish(transformed, _FILE_PREFIX, files)
    write_class_counts(transformed.uri, counted)
