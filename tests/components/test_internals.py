"""The private functions of libraries that this project uses behave as expected."""

import pyarrow as pa
import pytest
import tensorflow as tf
import tensorflow_data_validation as tfdv
import tensorflow_transform as tft
from tensorflow_transform.tf_metadata import dataset_metadata, metadata_io, schema_utils

from components.statistics_gen import _statistics_of
from components.transform.component import has_analyzers, write_graph

pytestmark = [pytest.mark.slow, pytest.mark.both_stacks]

SPEC = {"number": tf.io.FixedLenFeature([1], tf.float32)}
TYPES = {"number": tf.TensorSpec([None, 1], tf.float32)}


def doubled(inputs):
    return {"doubled": 2 * inputs["number"]}


def scaled(inputs):
    return {"scaled": tft.scale_to_0_1(inputs["number"])}


def test_an_analyzer_is_noticed():
    assert has_analyzers(scaled, TYPES)
    assert not has_analyzers(doubled, TYPES)


def test_a_graph_without_analyzers_transforms(tmp_path):
    schema = schema_utils.schema_from_feature_spec(SPEC)
    metadata = dataset_metadata.DatasetMetadata(schema)
    folder = tmp_path / tft.TFTransformOutput.RAW_METADATA_DIR
    metadata_io.write_metadata(metadata, str(folder))
    write_graph(doubled, schema, TYPES, str(tmp_path))
    layer = tft.TFTransformOutput(str(tmp_path)).transform_features_layer()
    found = layer({"number": tf.constant([[1.5], [4.0]])})
    assert found["doubled"].numpy().tolist() == [[3.0], [8.0]]


def test_statistics_of_batches_are_those_of_all_examples():
    columns = [[[1.0], [2.0]], [[4.0], None], [[9.0]]]
    batches = [pa.record_batch([pa.array(values)], ["number"]) for values in columns]
    [dataset] = _statistics_of(batches, tfdv.StatsOptions()).datasets
    [feature] = dataset.features
    assert dataset.num_examples == 5
    assert feature.num_stats.common_stats.num_missing == 1
    assert (feature.num_stats.min, feature.num_stats.mean) == (1.0, 4.0)
