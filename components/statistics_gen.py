"""StatisticsGen: computes the statistics of a sample of each split, without Beam.

The sample consists of single Examples of every file, so it does not depend on the order of the
input. The other Examples are read, but not decoded. TFDV's accumulators process the sample in less
time than TFDV's many Beam stages take to start.

`_compute_statistics` uses private parts of TensorFlow Data Validation (TFDV) 1.16 and 1.21. The
public function `tfdv.generate_statistics_in_memory` supports only one batch, and the function for
many batches starts Beam.

`@component` requires annotations that are types, so this module has no
`from __future__ import annotations`, which turns them into strings.
"""

import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import tensorflow as tf
import tensorflow_data_validation as tfdv
from absl import logging
from tensorflow_data_validation.statistics import stats_impl
from tensorflow_metadata.proto.v0 import schema_pb2, statistics_pb2
from tfx.dsl.component.experimental.annotations import InputArtifact, OutputArtifact, Parameter
from tfx.dsl.component.experimental.decorators import component
from tfx.types import artifact_utils
from tfx.types.standard_artifacts import Examples, ExampleStatistics, Schema
from tfx.utils import io_utils
from tfx_bsl.coders import example_coder

from components.schema_gen import read_schema
from examples.tfrecords import batches, count_examples, example_files, read

_BATCH = 8192
_COUNTED_VALUES = 1000
"""Number of the most frequent values of a feature that are counted, which is TFDV's default. There
are more for a category with more values, so that every class is counted."""


@component
def StatisticsGen(
    examples: InputArtifact[Examples],
    schema: InputArtifact[Schema],
    statistics: OutputArtifact[ExampleStatistics],
    max_examples: Parameter[int],
) -> None:
    """Compute the `statistics` of each split.

    If the sample of a split is empty or has anomalies, the statistics of all of its Examples are
    computed.

    Args:
      examples: the Examples.
      schema: the schema of the Examples, which defines the features that are categories.
      statistics: the output, with the files of TFX's StatisticsGen.
      max_examples: approximate size of the sample of each split, from all of its files; 0: all
        Examples.

    Raises:
      InputError: the Examples of a split were deleted, or a file is damaged.
      OSError, tensorflow.errors.OpError: a file cannot be read or written.
    """
    shape = read_schema([schema])
    options = tfdv.StatsOptions(
        schema=shape, num_rank_histogram_buckets=max(_COUNTED_VALUES, _most_categories(shape))
    )
    statistics.split_names = examples.split_names

    def compute(split: str) -> None:
        files = example_files(artifact_utils.get_split_uri([examples], split))
        count = sum(count_examples(files))
        rate = max_examples / count if 0 < max_examples < count else 1.0
        result = _compute_statistics(_batches(files, options.schema, rate), options)
        anomalies = tfdv.validate_statistics(result, options.schema)
        is_empty = not result.datasets[0].num_examples
        has_anomalies = anomalies.anomaly_info or anomalies.HasField("dataset_anomaly_info")
        if rate < 1 and (is_empty or has_anomalies):
            # A small sample may be empty, and any sample may lack a rare class.
            logging.info(
                "The sample of %s is empty or does not fit the schema: reading all Examples", split
            )
            result = _compute_statistics(_batches(files, options.schema, 1.0), options)
        path = os.path.join(artifact_utils.get_split_uri([statistics], split), "FeatureStats.pb")
        io_utils.write_bytes_file(path, result.SerializeToString())

    splits = artifact_utils.decode_split_names(examples.split_names)
    # While one split is read, the accumulators process another one.
    with ThreadPoolExecutor() as pool:
        list(pool.map(compute, splits))


def _most_categories(schema: schema_pb2.Schema) -> int:
    """Return the greatest number of values of an integer feature that is a category."""
    domains = (feature.int_domain for feature in schema.feature)
    return max((each.max - each.min + 1 for each in domains if each.is_categorical), default=0)


def _batches(files: list[str], schema: schema_pb2.Schema, rate: float) -> Iterator[pa.RecordBatch]:
    """Yield a random sample of the Examples of every file, decoded with the schema.

    The first batch is empty, and every call yields the same Examples.

    Args:
      files: the gzipped TFRecord files.
      schema: the schema of the Examples.
      rate: the fraction of the Examples, from 0 to 1.
    """
    decoder = example_coder.ExamplesToRecordBatchDecoder(schema.SerializeToString())
    yield decoder.DecodeBatch([])
    random = np.random.default_rng(0)
    chosen: list[bytes] = []
    for batch in read(batches(files, _BATCH).prefetch(2), files):
        if rate < 1:
            # Only the chosen Examples become Python objects.
            batch = tf.gather(batch, np.flatnonzero(random.random(len(batch)) < rate))
        chosen += batch.numpy().tolist()
        if len(chosen) >= _BATCH:
            yield decoder.DecodeBatch(chosen)
            chosen = []
    yield decoder.DecodeBatch(chosen)


def _compute_statistics(
    batches: Iterable[pa.RecordBatch], options: tfdv.StatsOptions
) -> statistics_pb2.DatasetFeatureStatisticsList:
    """Return the statistics of batches, computed by the accumulators of TFDV's Beam stages."""
    generators = stats_impl.get_generators(options, in_memory=True)
    accumulators = [generator.create_accumulator() for generator in generators]
    for batch in batches:
        accumulators = [
            generator.add_input(accumulator, batch)
            for generator, accumulator in zip(generators, accumulators, strict=True)
        ]
    return stats_impl.extract_statistics_output(accumulators, generators)
