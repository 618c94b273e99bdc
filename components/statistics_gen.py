"""StatisticsGen: computes the statistics of a sample of each split, without Beam.

The sample consists of single Examples from every file, so it is unbiased in any order of the input.
The other Examples are read, but not decoded. TFDV's accumulators process the sample in less time
than TFDV's many Beam stages take to start.

`_statistics_of` uses private parts of TensorFlow Data Validation (TFDV) 1.16 and 1.21: the public
function `tfdv.generate_statistics_in_memory` supports only one batch, and the one for many batches
starts Beam.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import tensorflow as tf
import tensorflow_data_validation as tfdv
from absl import logging
from tensorflow_data_validation.statistics import stats_impl
from tensorflow_metadata.proto.v0 import schema_pb2, statistics_pb2
from tfx import types
from tfx.components.statistics_gen import executor as tfx_executor
from tfx.dsl.components.base import base_beam_component, executor_spec
from tfx.types import BaseChannel, artifact_utils, standard_artifacts
from tfx.types.component_spec import ExecutionParameter
from tfx.types.standard_component_specs import (
    EXAMPLES_KEY,
    SCHEMA_KEY,
    STATISTICS_KEY,
    STATS_OPTIONS_JSON_KEY,
    StatisticsGenSpec,
)
from tfx.utils import io_utils, json_utils
from tfx_bsl.coders import example_coder

from components.beam import LocalBeamExecutor
from components.examples import example_files, read
from components.schema_gen import read_schema
from trainer_module.inputs.stored import count_examples

MAX_EXAMPLES_KEY = "max_examples"
_BATCH = 8192
_FILES_AT_ONCE = 4


class Executor(LocalBeamExecutor, tfx_executor.Executor):
    """Computes the statistics of a sample, or of all Examples by TFX's executor."""

    def Do(
        self,
        input_dict: dict[str, list[types.Artifact]],
        output_dict: dict[str, list[types.Artifact]],
        exec_properties: dict[str, Any],
    ) -> None:
        max_examples = exec_properties.get(MAX_EXAMPLES_KEY)
        [examples], [statistics] = input_dict[EXAMPLES_KEY], output_dict[STATISTICS_KEY]
        if max_examples is None:
            super().Do(input_dict, output_dict, exec_properties)
            return
        self._log_startup(input_dict, output_dict, exec_properties)
        options = tfdv.StatsOptions.from_json(exec_properties[STATS_OPTIONS_JSON_KEY])
        options.schema = read_schema(input_dict[SCHEMA_KEY])
        statistics.split_names, statistics.span = examples.split_names, examples.span
        rates = {}
        for split in artifact_utils.decode_split_names(examples.split_names):
            files = example_files(artifact_utils.get_split_uri([examples], split))
            rate = min(1.0, max_examples / max(1, sum(count_examples(files))))
            result = _statistics_of(_batches(files, options.schema, rate), options)
            anomalies = tfdv.validate_statistics(result, options.schema)
            if rate < 1 and (anomalies.anomaly_info or anomalies.HasField("dataset_anomaly_info")):
                # A sample may lack a rare class.
                logging.info(
                    "The sample of %s does not fit the schema: reading all Examples", split
                )
                rate = 1.0
                result = _statistics_of(_batches(files, options.schema, rate), options)
            rates[split] = rate
            folder = artifact_utils.get_split_uri([statistics], split)
            path = os.path.join(folder, tfx_executor.DEFAULT_FILE_NAME)
            io_utils.write_bytes_file(path, result.SerializeToString())
        statistics.set_json_value_custom_property(
            tfx_executor.SAMPLE_RATE_BY_SPLIT_PROPERTY_NAME, json_utils.dumps(rates)
        )


def _batches(files: list[str], schema: schema_pb2.Schema, rate: float) -> Iterator[pa.RecordBatch]:
    """Yield a fraction of the Examples of every file, always the same ones, as `schema` decodes."""

    def sample_of(place: tf.Tensor, file: tf.Tensor) -> tf.data.Dataset:
        def chosen(index: tf.Tensor, batch: tf.Tensor) -> tf.Tensor:
            chance = tf.random.stateless_uniform(tf.shape(batch), seed=tf.stack([place, index]))
            return tf.boolean_mask(batch, chance < rate)

        records = tf.data.TFRecordDataset(file, compression_type="GZIP").batch(_BATCH)
        return records.enumerate().map(chosen) if rate < 1 else records

    decoder = example_coder.ExamplesToRecordBatchDecoder(schema.SerializeToString())
    yield decoder.DecodeBatch([])
    samples = (
        tf.data.Dataset.from_tensor_slices(files)
        .enumerate()
        .interleave(
            sample_of,
            cycle_length=_FILES_AT_ONCE,
            num_parallel_calls=_FILES_AT_ONCE,
            deterministic=True,
        )
    )
    for batch in read(samples.rebatch(_BATCH).prefetch(2), files):
        yield decoder.DecodeBatch(batch.numpy())


def _statistics_of(
    batches: Iterable[pa.RecordBatch], options: tfdv.StatsOptions
) -> statistics_pb2.DatasetFeatureStatisticsList:
    """Return the statistics of batches, by the accumulators of TFDV's Beam stages."""
    generators = stats_impl.get_generators(options, in_memory=True)
    accumulators = [generator.create_accumulator() for generator in generators]
    for batch in batches:
        accumulators = [
            generator.add_input(accumulator, batch)
            for generator, accumulator in zip(generators, accumulators, strict=True)
        ]
    return stats_impl.extract_statistics_output(accumulators, generators)


class SampledStatisticsGenSpec(types.ComponentSpec):
    """The interface of TFX's StatisticsGen, and `max_examples`."""

    PARAMETERS = {
        **StatisticsGenSpec.PARAMETERS,
        MAX_EXAMPLES_KEY: ExecutionParameter(type=int, optional=True),
    }
    INPUTS = StatisticsGenSpec.INPUTS
    OUTPUTS = StatisticsGenSpec.OUTPUTS


class SampledStatisticsGen(base_beam_component.BaseBeamComponent):
    """Examples and their schema -> `statistics` of each split.

    Args:
      examples: the Examples.
      schema: their schema, which defines the features that are categories.
      max_examples: approximate size of the sample of each split, from all of its files; None: all
        Examples, by the executor of TFX's StatisticsGen.
    """

    SPEC_CLASS = SampledStatisticsGenSpec
    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(Executor)

    def __init__(self, examples: BaseChannel, schema: BaseChannel, max_examples: int | None):
        spec = SampledStatisticsGenSpec(
            examples=examples,
            schema=schema,
            stats_options_json=tfdv.StatsOptions().to_json(),
            exclude_splits="null",
            sample_rate_by_split="null",
            max_examples=max_examples,
            statistics=types.Channel(type=standard_artifacts.ExampleStatistics),
        )
        super().__init__(spec=spec)
