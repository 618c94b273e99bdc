"""The private parts of TensorFlow Data Validation that this package uses, and the reason.

The public function `tfdv.generate_statistics_in_memory` supports only one batch of Examples in
memory. A split has many batches, and the public function for those starts Beam, whose many stages
take longer to start than a sample of 100,000 Examples takes here (tensorflow_data_validation 1.16
and 1.21).
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import tensorflow_data_validation as tfdv
from tensorflow_data_validation.statistics import stats_impl
from tensorflow_metadata.proto.v0 import statistics_pb2


def statistics_of(
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
