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

import math
import os
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import apache_beam as beam
import pyarrow as pa
import tensorflow_transform as tft
import tensorflow_transform.beam as tft_beam
import tfx.components
from absl import logging
from google.protobuf import text_format
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

from components.beam import LocalBeamExecutor, divide_into_units, read_results, write_results
from components.examples import newest_span, publish, read_spans, split_files
from components.properties import CODE_KEY, UNSEEN_SPAN_PROPERTY
from components.schema_gen import read_schema
from components.transform_batches import BatchTransformer
from components.transform_files import (
    TRANSFORMED,
    TransformedUnit,
    TransformFiles,
    TransformUnit,
)
from components.transformed_spans import TransformedFile, TransformedSpans
from core.progress import report, report_stage
from examples import digest
from examples.counts import write_class_counts
from examples.tfrecords import batches, count_examples, read
from preprocessing.labels import read_labels, write_labels
from preprocessing.settings import TransformConfig

_FILE_PREFIX = "transformed_examples"
SPAN_CACHE_KEY = "span_cache"
"""The execution property with the folder that keeps transformed spans, which the pipeline adds."""
_DECIDING = (PREPROCESSING_FN_KEY, CUSTOM_CONFIG_KEY, SPLITS_CONFIG_KEY, CODE_KEY)
"""The execution properties that determine the output."""
_ANALYZED_BATCH = 32_768
"""Size of a batch for analyzers. A vocabulary is counted in each batch, and Beam then sums the
counts of single words, so large batches reduce Beam's work."""

_UNITS_PER_ELEMENT = 4
_SAMPLED_FILES, _SAMPLED_EXAMPLES = 8, 512
"""The number of files, and of Examples in each of them, on which compiled code is compared with the
transform graph."""

PreprocessingFn = Callable[[Any], dict[str, Any]]
"""A function from raw features to transformed ones, see `preprocessing.transform`."""


def _read_batches(files: list[str], schema: schema_pb2.Schema) -> Iterator[pa.RecordBatch]:
    decoder = example_coder.ExamplesToRecordBatchDecoder(schema.SerializeToString())
    for batch in read(batches(files, _ANALYZED_BATCH).prefetch(1), files):
        yield decoder.DecodeBatch(batch.numpy())


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
        has_analyzers = self._analyze(
            fn, schema, split_files(examples, splits.analyze), graph.uri, scratch
        )
        write_labels(graph.uri, labels)
        spans = read_spans(artifact_utils.get_single_uri(examples))
        [source] = examples
        newest = newest_span(source)
        if newest is not None:
            unseen = newest if spans else newest + 1
            transformed.set_int_custom_property(UNSEEN_SPAN_PROPERTY, unseen)
        if has_analyzers:
            spans = {}
        files = {split: split_files(examples, [split]) for split in splits.transform}
        spec = schema_utils.schema_as_feature_spec(schema).feature_spec
        settings = TransformConfig.from_dict(config)
        sample = _first_examples([file for paths in files.values() for file in paths])
        stage = TransformFiles(
            graph=graph.uri,
            spec=spec,
            scratch=scratch,
            config=settings,
            # A model is fitted to the splits that are analyzed, and uses their counts by class.
            counted=list(splits.analyze),
            labels=labels,
            compiled=BatchTransformer(graph.uri, spec, settings).equal_features(sample),
            is_apart=bool(spans),
        )
        if spans:
            made_with = [str(exec_properties.get(key)) for key in _DECIDING]
            made_with += [text_format.MessageToString(schema), repr(labels)]
            cache = TransformedSpans(exec_properties[SPAN_CACHE_KEY], made_with, spans, scratch)
            done = self._transform_apart(files, stage, cache, list(splits.analyze), scratch)
        else:
            done = self._transform_units(_units(files), stage, scratch)
        _publish(transformed, splits.transform, done)
        fileio.rmtree(scratch)
        digest.write_digest(
            transformed.uri,
            split_files(examples, sorted({*splits.analyze, *splits.transform})),
            [str(exec_properties.get(key)) for key in _DECIDING],
        )

    def _transform_units(
        self, units: Sequence[TransformUnit], stage: TransformFiles, scratch: str
    ) -> list[TransformedUnit]:
        """Transform the files of units.

        Args:
          units: the units.
          stage: the stage that transforms units.
          scratch: the folder for the results.

        Returns:
          The results of the units.

        Raises:
          InputError: a file is damaged, or a label is the index of no class.
        """
        report(TRANSFORMED, 0, sum(count_examples([file for unit in units for file in unit.files])))
        with self._make_beam_pipeline() as pipeline:
            done = (
                pipeline
                | "Units"
                >> beam.Create(divide_into_units(units, _UNITS_PER_ELEMENT), reshuffle=True)
                | "TransformFiles" >> beam.ParDo(stage)
            )
            write_results(pipeline, done, scratch)
        return [TransformedUnit(*unit) for unit in read_results(scratch)]

    def _transform_apart(
        self,
        files: Mapping[str, Sequence[str]],
        stage: TransformFiles,
        cache: TransformedSpans,
        counted: Collection[str],
        scratch: str,
    ) -> list[TransformedUnit]:
        """Transform the files that no earlier run has transformed, each of them apart.

        Args:
          files: split -> its files.
          stage: the stage that transforms units, with files apart.
          cache: the files that are transformed already.
          counted: the splits whose reviews are counted by class.
          scratch: the folder for the results.

        Returns:
          A unit for each split, with the results of its files in their order.

        Raises:
          InputError: a file is damaged, or a label is the index of no class.
        """
        found: dict[str, TransformedFile] = {}
        for split, paths in files.items():
            found |= cache.find(paths, split in counted)
        new = _units(
            {split: [path for path in paths if path not in found] for split, paths in files.items()}
        )
        total = sum(map(len, files.values()))
        logging.info("Files: %d are transformed, %d are reused", total - len(found), len(found))
        done = self._transform_units(new, stage, scratch) if new else []
        sources = {(unit.split, unit.number): unit.files for unit in new}
        for unit in done:
            for index, (path, count) in enumerate(unit.shards):
                counts = unit.classes[index] if unit.classes else None
                file = sources[unit.split, unit.number][index]
                found[file] = cache.store(file, TransformedFile(path, count, counts))
        cache.remove_old()
        return [
            TransformedUnit(
                split,
                0,
                [(found[path].path, found[path].examples) for path in paths],
                [kept for path in paths if (kept := found[path].classes)],
            )
            for split, paths in files.items()
        ]

    def _analyze(
        self,
        fn: PreprocessingFn,
        schema: schema_pb2.Schema,
        files: list[str],
        graph: str,
        scratch: str,
    ) -> bool:
        """Write the transform graph, with the metadata of the raw features.

        Args:
          fn: the `preprocessing_fn` whose graph is written.
          schema: the schema of the raw features.
          files: the files of Examples for the analyzers of `fn`.
          graph: the folder of the graph.
          scratch: the folder for temporary files of the analysis.

        Returns:
          Whether the graph depends on the files.
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
            return False
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
        return True


class ReviewTransform(tfx.components.Transform):
    """TFX's Transform with an executor that keeps Examples in batches.

    The outputs are `transform_graph` and `transformed_examples`. Set `disable_statistics` and
    `disable_analyzer_cache`, because the executor has neither statistics nor an analyzer cache.
    """

    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(TransformExecutor)


def _first_examples(files: Sequence[str]) -> list[bytes]:
    """Return the first Examples of at most `_SAMPLED_FILES` files, at regular distances.

    Raises:
      InputError: a file is damaged.
      tensorflow.errors.OpError: a file cannot be read.
    """
    sampled = files[:: math.ceil(len(files) / _SAMPLED_FILES)] if files else []
    return [
        example
        for file in sampled
        for batch in read(batches([file], _SAMPLED_EXAMPLES).take(1), [file])
        for example in batch.numpy()
    ]


def _units(files: Mapping[str, Sequence[str]]) -> list[TransformUnit]:
    """Return the units of work for some files of each split."""
    return [
        TransformUnit(split, number, unit)
        for split, paths in files.items()
        for number, unit in enumerate(divide_into_units(paths))
    ]


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
    counted: defaultdict[str, list[str]] = defaultdict(list)
    for unit in done:
        files[unit.split] += unit.shards
        if unit.classes:
            counted[f"Split-{unit.split}"] += unit.classes
    publish(transformed, _FILE_PREFIX, files)
    write_class_counts(transformed.uri, counted)
