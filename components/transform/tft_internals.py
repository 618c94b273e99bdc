"""The private parts of TensorFlow Transform that this package uses, and the reason.

`tft_beam.AnalyzeDataset` starts Beam, which takes five seconds, even for a `preprocessing_fn`
without analyzers, whose graph does not depend on data. There is no public function that detects
analyzers, or that writes such a graph without Beam (tensorflow_transform 1.16 and 1.21).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf
from tensorflow_metadata.proto.v0 import schema_pb2
from tensorflow_transform import analyzer_nodes, impl_helper
from tensorflow_transform.tf_metadata import schema_utils

PreprocessingFn = Callable[[Any], dict[str, Any]]


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
