"""preprocessing_fn, run by TensorFlow Transform."""

import pytest
import tensorflow as tf
import tensorflow_transform as tft
import tensorflow_transform.beam as tft_beam
from tensorflow_transform.coders import example_proto_coder
from tensorflow_transform.tf_metadata import dataset_metadata, schema_utils

from preprocessing import features
from preprocessing.transform import preprocessing_fn

pytestmark = pytest.mark.slow

SETTINGS = {
    "ngrams": 2,
    "ngram_buckets": 1000,
    "openings": [2, 3],
    "vocabulary_size": 3,
    "max_tokens": 4,
}
TEXTS = ["good good good phone", "good phone bad", "bad", "phone " * 60, ""]


@pytest.fixture(scope="module")
def transformed(tmp_path_factory):
    spec = {
        features.TEXT: tf.io.FixedLenFeature([1], tf.string),
        features.LABEL: tf.io.FixedLenFeature([1], tf.int64),
    }
    metadata = dataset_metadata.DatasetMetadata(schema_utils.schema_from_feature_spec(spec))
    rows = [{"text": [text.encode()], "label": [i % 2]} for i, text in enumerate(TEXTS)]
    custom_config = {**SETTINGS, "features": [features.NGRAMS, features.TOKENS]}
    folder = str(tmp_path_factory.mktemp("transform"))
    with tft_beam.Context(temp_dir=folder):
        (data, _), transform_fn = (rows, metadata) | tft_beam.AnalyzeAndTransformDataset(
            lambda inputs: preprocessing_fn(inputs, custom_config)
        )
        transform_fn | tft_beam.WriteTransformFn(folder)
    return sorted(data, key=lambda row: len(row["ngrams"])), tft.TFTransformOutput(folder)


def test_tokens_are_cut_but_not_padded_and_numbered_by_frequency(transformed):
    rows, output = transformed
    words = output.vocabulary_by_name("words")
    assert words[0] == b"phone"
    number = {word: index + features.FIRST_TOKEN for index, word in enumerate(words)}
    by_length = {len(row["ngrams"]): list(row["tokens"]) for row in rows}
    good, phone, bad = number[b"good"], number[b"phone"], number[b"bad"]
    assert by_length[15] == [good, good, good, phone]
    assert by_length[13] == [good, phone, bad]
    assert by_length[3] == [bad]
    assert by_length[0] == []
    assert by_length[127] == [phone] * 4


def test_a_word_outside_the_vocabulary_of_the_train_split_is_unknown(transformed):
    _, output = transformed
    layer = output.transform_features_layer()
    tokens = layer({features.TEXT: tf.constant([["a good  phone"], [""], ["Bad, bad"]])})["tokens"]
    dense = tf.sparse.to_dense(tokens, default_value=features.PADDING_TOKEN).numpy()
    words = output.vocabulary_by_name("words")
    good, phone, bad = (words.index(word) + 2 for word in (b"good", b"phone", b"bad"))
    assert dense.tolist() == [[1, good, phone], [0, 0, 0], [bad, 1, bad]]


def test_tokens_are_read_from_examples_as_a_ragged_feature(transformed):
    rows, output = transformed
    coder = example_proto_coder.ExampleProtoCoder(output.transformed_metadata.schema)
    serialized = [coder.encode(row) for row in rows]
    spec = {features.TOKENS: tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int64)}
    parsed = tf.io.parse_example(serialized, spec)[features.TOKENS]
    assert parsed.row_lengths().numpy().tolist() == [0, 1, 3, 4, 4]


def test_ngrams_have_any_length(transformed):
    rows, _ = transformed
    assert [len(row["ngrams"]) for row in rows] == [0, 3, 13, 15, 127]


def test_length_buckets_and_labels(transformed):
    rows, _ = transformed
    assert [row[features.LENGTH_BUCKET][0] for row in rows] == [b"1-19"] * 4 + [b"50-99"]
    assert {int(row[features.LABEL][0]) for row in rows} == {0, 1}


def test_only_features_of_the_model_are_computed():
    inputs = {
        features.TEXT: tf.constant([["good phone"]]),
        features.LABEL: tf.constant([[1]], tf.int64),
    }
    outputs = preprocessing_fn(inputs, {**SETTINGS, "features": [features.NGRAMS]})
    assert set(outputs) == {features.LABEL, features.LENGTH_BUCKET, features.NGRAMS}
