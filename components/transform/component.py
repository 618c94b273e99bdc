"""ReviewTransform: TFX's Transform with an executor of our own, which writes the same artifacts.

TFX's own executor passes single records between Beam stages, which has a cost for each record, and
tf.Transform batches them again. Here a batch remains a batch from the input file to the output
file, and TensorFlow's threads read, parse and transform it.

`has_analyzers` and `write_graph` use private parts of TensorFlow Transform 1.16 and 1.21:
`tft_beam.AnalyzeDataset` starts Beam, which takes five seconds, even for a `preprocessing_fn`
without analyzers, whose graph does not depend on data. There is no public function that detects
analyzers, or that writes such a graph without Beam.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any

import apache_beam as beam
import tensorflow as tf
import tensorflow_transform as tft
import tensorflow_transform.beam as tft_beam
import tfx.components
from tensorflow_metadata.proto.v0 import schema_pb2
from tensorflow_transform import analyzer_nodes, impl_helper
from tensorflow_transform.tf_metadata import dataset_metadata, metadata_io, schema_utils
from tfx import types
from tfx.components.transform import executor_utils
from tfx.components.util import examples_utils, udf_utils
from tfx.dsl.components.base import executor_spec
from tfx.dsl.io import fileio
from tfx.proto import example_gen_pb2, transform_pb2
from tfx.types import BaseChannel, artifact_utils, standard_component_specs
from tfx.utils import io_utils, json_utils
from tfx_bsl.public import tfxio

from components import tfrecords
from components.beam_executor import LocalBeamExecutor
from components.examples import split_files
from components.transform import stages
from components.worker_results import read_results, write_results
from core.files import without_magic
from trainer_module.inputs import stored

_FILE_PREFIX = "transformed_examples"
_FILES_PER_UNIT = 8
_DECIDING = (
    standard_component_specs.PREPROCESSING_FN_KEY,
    standard_component_specs.CUSTOM_CONFIG_KEY,
    standard_component_specs.SPLITS_CONFIG_KEY,
    "code",
)
"""The execution properties that determine the output; the pipeline adds the last one."""
PreprocessingFn = Callable[[Any], dict[str, Any]]


class Executor(LocalBeamExecutor):
    """Creates the transform graph, and the transformed Examples."""

    def Do(
        self,
        input_dict: dict[str, list[types.Artifact]],
        output_dict: dict[str, list[types.Artifact]],
        exec_properties: dict[str, Any],
    ) -> None:
        """See TFX's BaseExecutor."""
        self._log_startup(input_dict, output_dict, exec_properties)
        examples = input_dict[standard_component_specs.EXAMPLES_KEY]
        transformed = artifact_utils.get_single_instance(
            output_dict[standard_component_specs.TRANSFORMED_EXAMPLES_KEY]
        )
        graph = artifact_utils.get_single_uri(
            output_dict[standard_component_specs.TRANSFORM_GRAPH_KEY]
        )
        splits = executor_utils.ResolveSplitsConfig(
            exec_properties.get(standard_component_specs.SPLITS_CONFIG_KEY), examples
        )
        transformed.split_names = artifact_utils.encode_split_names(list(splits.transform))
        schema = io_utils.SchemaReader().read(
            io_utils.get_only_uri_in_dir(
                artifact_utils.get_single_uri(input_dict[standard_component_specs.SCHEMA_KEY])
            )
        )

        scratch = os.path.join(transformed.uri, "unpublished")
        fileio.makedirs(scratch)
        config = json_utils.loads(exec_properties[standard_component_specs.CUSTOM_CONFIG_KEY])
        fn = partial(
            udf_utils.get_fn(exec_properties, standard_component_specs.PREPROCESSING_FN_KEY),
            custom_config=config,
        )
        self._analyze(fn, schema, split_files(examples, splits.analyze), graph, scratch)
        spec = _parsing_spec(fn, schema)
        by_split = {split: split_files(examples, [split]) for split in splits.transform}
        # The splits that are analyzed are those that a model is fitted to.
        stage = stages.TransformFiles(graph, spec, scratch, config, list(splits.analyze))
        done = self._transform(by_split, stage, scratch)
        examples_by_file: dict[str, int] = {}
        for split in splits.transform:
            written = {
                path: count for name, files, _ in done for path, count in files if name == split
            }
            folder = artifact_utils.get_split_uri([transformed], split)
            published = tfrecords.publish(folder, _FILE_PREFIX, list(written))
            names = [os.path.relpath(path, transformed.uri) for path in published]
            examples_by_file.update(zip(names, written.values(), strict=True))
        stored.write_class_counts(transformed.uri, _counted(transformed, done))
        fileio.rmtree(scratch)
        stored.write_example_counts(transformed.uri, examples_by_file)
        stored.write_content(
            transformed.uri,
            split_files(examples, sorted({*splits.analyze, *splits.transform})),
            [str(exec_properties.get(key)) for key in _DECIDING],
        )
        examples_utils.set_payload_format(transformed, example_gen_pb2.FORMAT_TF_EXAMPLE)
        examples_utils.set_file_format(transformed, "tfrecords_gzip")

    def _analyze(
        self,
        fn: PreprocessingFn,
        schema: schema_pb2.Schema,
        files: list[str],
        graph: str,
        scratch: str,
    ) -> None:
        """Write the transform graph to the folder `graph`."""
        metadata = dataset_metadata.DatasetMetadata(schema)
        metadata_io.write_metadata(
            metadata, os.path.join(graph, tft.TFTransformOutput.RAW_METADATA_DIR)
        )
        type_specs = _type_specs(schema)
        if not has_analyzers(fn, type_specs):
            write_graph(fn, schema, type_specs, graph)
            return
        columns = tft.get_analyze_input_columns(fn, type_specs)
        projected = _projected(schema, columns)
        # The config also has the features that are not read, because the tracing requires them.
        config = _source(schema).Project(columns).TensorAdapterConfig()
        with (
            self._make_beam_pipeline() as pipeline,
            tft_beam.Context(temp_dir=without_magic(scratch), use_deep_copy_optimization=True),
        ):
            batches = (
                pipeline
                | "AnalyzedFiles" >> beam.Create(_units(files), reshuffle=True)
                | "ReadBatches" >> beam.ParDo(stages.ReadBatches(projected))
            )
            transform_fn = (batches, config) | tft_beam.AnalyzeDataset(fn)
            _ = transform_fn | tft_beam.WriteTransformFn(graph)

    def _transform(
        self,
        by_split: dict[str, list[str]],
        stage: stages.TransformFiles,
        scratch: str,
    ) -> list[stages.Done]:
        """Transform the files of each split, and write the results to `scratch`."""
        units = [
            (split, number, files)
            for split, paths in by_split.items()
            for number, files in enumerate(_units(paths))
        ]
        with self._make_beam_pipeline() as pipeline:
            done = (
                pipeline
                | "Units" >> beam.Create(units, reshuffle=True)
                | "TransformFiles" >> beam.ParDo(stage)
            )
            write_results(pipeline, done, scratch)
        return read_results(scratch)


class ReviewTransform(tfx.components.Transform):
    """Examples and a schema -> `transform_graph` and `transformed_examples`."""

    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(Executor)

    def __init__(
        self,
        examples: BaseChannel,
        schema: BaseChannel,
        preprocessing_fn: str,
        splits_config: transform_pb2.SplitsConfig,
        custom_config: dict[str, Any],
    ):
        """Construct the component.

        Args:
          examples: raw Examples.
          schema: their schema.
          preprocessing_fn: dotted path of the function.
          splits_config: the splits that are analyzed, and those that are transformed.
          custom_config: the function's second argument.
        """
        super().__init__(
            examples=examples,
            schema=schema,
            preprocessing_fn=preprocessing_fn,
            splits_config=splits_config,
            custom_config=custom_config,
            # StatisticsGen and DataGate have checked the data already.
            disable_statistics=True,
            disable_analyzer_cache=True,
        )


def has_analyzers(fn: PreprocessingFn, type_specs: dict[str, tf.TypeSpec]) -> bool:
    """Return whether the graph of a `preprocessing_fn` depends on the data."""
    graph, _, _ = impl_helper.trace_preprocessing_function(fn, type_specs, use_tf_compat_v1=False)
    return bool(graph.get_collection(analyzer_nodes.TENSOR_REPLACEMENTS))


def write_graph(
    fn: PreprocessingFn,
    schema: schema_pb2.Schema,
    type_specs: dict[str, tf.TypeSpec],
    folder: str,
) -> None:
    """Write the transform graph of a `preprocessing_fn` without analyzers.

    Args:
      fn: the `preprocessing_fn`.
      schema: the schema of the raw Examples.
      type_specs: feature -> type of the tensor that `fn` gets.
      folder: the folder of the graph, which `tft.TFTransformOutput` reads.
    """
    feature_spec = schema_utils.schema_as_feature_spec(schema).feature_spec
    impl_helper.analyze_in_place(fn, False, feature_spec, type_specs, folder)


def _counted(transformed: types.Artifact, done: list[stages.Done]) -> dict[str, list[str]]:
    """Return the name of the folder of each split -> its files with counts by class."""
    found: dict[str, list[str]] = {}
    for split, _, file in done:
        if file:
            folder = artifact_utils.get_split_uri([transformed], split)
            found.setdefault(os.path.basename(folder), []).append(file)
    return found


def _units(files: list[str]) -> list[list[str]]:
    """Divide files into units of work for Beam's workers."""
    count = -(-len(files) // _FILES_PER_UNIT)
    return [files[number::count] for number in range(count)]


def _source(schema: schema_pb2.Schema) -> tfxio.TFExampleBeamRecord:
    return tfxio.TFExampleBeamRecord("tfrecords_gzip", schema=schema)


def _type_specs(schema: schema_pb2.Schema) -> dict[str, tf.TypeSpec]:
    specs: dict[str, tf.TypeSpec] = _source(schema).TensorAdapter().OriginalTypeSpecs()
    return specs


def _projected(schema: schema_pb2.Schema, names: list[str]) -> schema_pb2.Schema:
    """Return a schema of these features only, so that the others are not decoded."""
    return schema_pb2.Schema(feature=[item for item in schema.feature if item.name in names])


def _parsing_spec(fn: PreprocessingFn, schema: schema_pb2.Schema) -> dict[str, Any]:
    """Return the tf.io parsing spec of the raw features that `fn` uses."""
    columns = tft.get_transform_input_columns(fn, _type_specs(schema))
    spec: dict[str, Any] = schema_utils.schema_as_feature_spec(
        _projected(schema, columns)
    ).feature_spec
    return spec
