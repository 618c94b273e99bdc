"""Executor of StatisticsGen: looks at a sample of each split, and needs no Beam for that.

ReviewExampleGen spreads reviews over its files by a hash of their text, so some of the files are a
fair sample, and TFDV's accumulators are filled with it in less time than its many Beam stages
take to start.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import tensorflow as tf
import tensorflow_data_validation as tfdv
from tensorflow_data_validation.statistics import stats_impl
from tensorflow_metadata.proto.v0 import schema_pb2
from tfx import types
from tfx.components.statistics_gen import executor as tfx_executor
from tfx.dsl.io import fileio
from tfx.types import artifact_utils, standard_component_specs
from tfx.utils import io_utils, json_utils
from tfx_bsl.coders import example_coder

from components.local_beam import LocalBeamExecutor
from preprocessing.files import file_size

MAX_EXAMPLES_KEY = "max_examples"
_BATCH = 8192


class Executor(LocalBeamExecutor, tfx_executor.Executor):
    """TFX's executor where all Examples are asked for; see the module for a sample."""

    def Do(
        self,
        input_dict: dict[str, list[types.Artifact]],
        output_dict: dict[str, list[types.Artifact]],
        exec_properties: dict[str, Any],
    ) -> None:
        """See TFX's BaseExecutor."""
        max_examples = exec_properties.get(MAX_EXAMPLES_KEY)
        if max_examples is None:
            super().Do(input_dict, output_dict, exec_properties)
            return
        self._log_startup(input_dict, output_dict, exec_properties)
        examples = artifact_utils.get_single_instance(
            input_dict[standard_component_specs.EXAMPLES_KEY]
        )
        statistics = artifact_utils.get_single_instance(
            output_dict[standard_component_specs.STATISTICS_KEY]
        )
        schema = io_utils.SchemaReader().read(
            io_utils.get_only_uri_in_dir(
                artifact_utils.get_single_uri(input_dict[standard_component_specs.SCHEMA_KEY])
            )
        )
        options = tfdv.StatsOptions.from_json(
            exec_properties[standard_component_specs.STATS_OPTIONS_JSON_KEY]
        )
        options.schema = schema
        names = artifact_utils.decode_split_names(examples.split_names)
        statistics.split_names = artifact_utils.encode_split_names(names)
        statistics.span = examples.span
        rates = {}
        for name in names:
            sample = _Sample(artifact_utils.get_split_uri([examples], name), max_examples)
            result = _statistics(sample.batches(_looked_at(schema, options)), options)
            folder = artifact_utils.get_split_uri([statistics], name)
            path = os.path.join(folder, tfx_executor.DEFAULT_FILE_NAME)
            io_utils.write_bytes_file(path, result.SerializeToString())
            rates[name] = sample.rate
        statistics.set_json_value_custom_property(
            tfx_executor.SAMPLE_RATE_BY_SPLIT_PROPERTY_NAME, json_utils.dumps(rates)
        )


class _Sample:
    """Files of a split, from all over the list, until there are enough Examples.

    `rate` is how much of the split was read, by size.
    """

    def __init__(self, folder: str, max_examples: int):
        self._files = _spread(sorted(fileio.glob(io_utils.all_files_pattern(folder))))
        self._max_examples = max_examples
        self.rate = 0.0

    def batches(self, schema: schema_pb2.Schema) -> Iterator[pa.RecordBatch]:
        decoder = example_coder.ExamplesToRecordBatchDecoder(schema.SerializeToString())
        yield decoder.DecodeBatch([])
        sizes = [file_size(file) for file in self._files]
        examples = read = 0
        for file, size in zip(self._files, sizes, strict=True):
            records = tf.data.TFRecordDataset(file, compression_type="GZIP").batch(_BATCH)
            for batch in records.prefetch(2).as_numpy_iterator():
                examples += len(batch)
                yield decoder.DecodeBatch(batch)
            read += size
            if examples >= self._max_examples:
                break
        self.rate = read / sum(sizes)


def _spread(files: list[str]) -> list[str]:
    """The files in an order in which any first few of them come from all over the list."""
    order = sorted(range(len(files)), key=lambda index: f"{index:032b}"[::-1])
    return [files[index] for index in order]


def _looked_at(schema: schema_pb2.Schema, options: tfdv.StatsOptions) -> schema_pb2.Schema:
    allowed = options.feature_allowlist
    return schema_pb2.Schema(
        feature=[item for item in schema.feature if allowed is None or item.name in allowed]
    )


def _statistics(batches: Iterator[pa.RecordBatch], options: tfdv.StatsOptions) -> Any:
    """A DatasetFeatureStatisticsList, by the accumulators that TFDV's Beam stages use."""
    generators = stats_impl.get_generators(options, in_memory=True)
    accumulators = [generator.create_accumulator() for generator in generators]
    for batch in batches:
        accumulators = [
            generator.add_input(accumulator, batch)
            for generator, accumulator in zip(generators, accumulators, strict=True)
        ]
    return stats_impl.extract_statistics_output(accumulators, generators)
