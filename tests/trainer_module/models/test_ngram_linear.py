"""The n-gram model: its layer, its fixed scale, and every form in which it is trained."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from preprocessing import features
from preprocessing.labels import SENTIMENT
from preprocessing.settings import Transform
from trainer_module import models
from trainer_module.loop.trainable import Trainable
from trainer_module.models import ngram_linear

BUCKETS = 50
FINITE = st.floats(-1e6, 1e6, width=32)


def build(buckets=BUCKETS, length_power=0.5, **options):
    hyperparameters = ngram_linear.Hyperparameters(length_power=length_power)
    return ngram_linear.build(
        hyperparameters, Transform(ngram_buckets=buckets), SENTIMENT, **options
    )


def bag(model):
    return model.get_layer("bag")


def random_ngrams():
    """Return the ids of the n-grams of 40 reviews, of which every fifth is empty."""
    random = np.random.default_rng(0)
    lengths = random.integers(1, 12, 40) * (np.arange(40) % 5 > 0)
    return tf.RaggedTensor.from_row_lengths(random.integers(0, BUCKETS, lengths.sum()), lengths)


def test_the_scale_is_larger_for_ngrams_that_tell_the_classes_apart():
    model = build(4)
    ngram_linear.adapt(model, np.zeros([2, 4]))
    assert bag(model).scale.numpy().tolist() == [1.0] * 4, "reviews without any n-gram"
    # Of two negative reviews and of two positive ones.
    ngram_linear.adapt(model, np.array([[0.0, 2.0, 2.0, 0.0], [2.0, 0.0, 2.0, 0.0]]))
    scale = bag(model).scale.numpy()
    assert scale[0] == pytest.approx(scale[1])
    assert scale[0] > 2 * scale[2]
    occurrences = np.array([2, 2, 4, 0])
    assert (scale * occurrences).sum() / occurrences.sum() == pytest.approx(1.0)


def test_the_scale_does_not_depend_on_which_class_is_the_majority():
    counts = np.array([[3e6, 1e6, 1e6], [1e6, 1e6, 3e6]])
    scales = []
    for of_classes in ([[1], [1]], [[10], [1]], [[1], [10]]):
        model = build(3)
        ngram_linear.adapt(model, counts * of_classes)
        # Only relative to each other: their mean depends on the occurrences.
        scale = bag(model).scale.numpy()
        scales.append(scale / scale[0])
    np.testing.assert_allclose(scales[1], scales[0], rtol=1e-3)
    np.testing.assert_allclose(scales[2], scales[0], rtol=1e-3)


@pytest.mark.parametrize("static_shapes", [False, True])
def test_a_bag_sums_weights_by_a_power_of_the_length_and_an_empty_review_is_the_bias(static_shapes):
    def logits(ids, table, scale, length_power):
        model = build(len(table), length_power=length_power, static_shapes=static_shapes)
        bag(model).table.assign(table)
        bag(model).scale.assign(scale)
        bag(model).bias.assign([0.5])
        inputs = ids.to_tensor(-1, shape=[None, 600]) if static_shapes else ids
        return model({features.NGRAMS: inputs}).numpy().ravel().tolist()

    ids = tf.ragged.constant([[0, 1, 1], [], [2], [], []], dtype=tf.int64)
    assert logits(ids, [1.0, 10.0, 100.0], [1.0, 2.0, 1.0], 0.0) == [41.5, 0.5, 100.5, 0.5, 0.5]
    ids = tf.RaggedTensor.from_row_lengths(tf.zeros([576], tf.int64), [512, 64, 0])
    for power, expected in [(0.5, [362.5, 128.5, 0.5]), (1.0, [256.5, 256.5, 0.5])]:
        assert logits(ids, [1.0, 0.0], [1.0, 1.0], power) == pytest.approx(expected, abs=0.1)


@pytest.mark.parametrize("static_shapes", [False, True])
def test_a_compressed_model_has_a_byte_for_each_weight_and_almost_the_same_answers(static_shapes):
    model = build(length_power=0.0, static_shapes=static_shapes)
    weights = np.random.default_rng(0).laplace(size=BUCKETS)
    bag(model).table.assign(weights / 3)
    bag(model).scale.assign(np.full(BUCKETS, 3))
    bag(model).bias.assign([0.5])
    hyperparameters = ngram_linear.Hyperparameters(compressed=True, length_power=0.0)
    small = ngram_linear.exported(model, hyperparameters)
    assert [weight.dtype for weight in small.weights if weight.shape == [BUCKETS]] == [tf.uint8]
    ids = random_ngrams()
    inputs = {features.NGRAMS: ids.to_tensor(-1, shape=[None, 15]) if static_shapes else ids}
    np.testing.assert_allclose(small(inputs), model(inputs), atol=0.05)
    assert ngram_linear.exported(model, ngram_linear.Hyperparameters()) is model


@given(arrays.arrays(np.float32, st.integers(1, 300), elements=FINITE))
def test_each_weight_gets_its_nearest_level(values):
    places, levels = ngram_linear.quantize(values)
    assert (places.dtype, levels.dtype, levels.shape) == (np.uint8, np.float32, (256,))
    nearest = np.abs(values[:, None] - levels).min(axis=1)
    np.testing.assert_allclose(np.abs(values - levels[places]), nearest, rtol=1e-3, atol=1e-3)


def test_an_ngram_that_is_read_once_learns_a_good_part_of_the_learning_rate():
    batch_size = 4096
    model = Trainable(build(length_power=0.0), models.loss, models.hits)
    model.compile(ngram_linear.optimizer(0.1))
    lengths = [1] + [0] * (batch_size - 1)
    ids = tf.RaggedTensor.from_row_lengths(tf.constant([7], tf.int64), lengths)
    model.train_on_batch({features.NGRAMS: ids}, tf.ones([batch_size, 1]))
    expected = np.zeros(BUCKETS)
    gradient = 0.5 / batch_size
    expected[7] = 0.1 * gradient / np.sqrt(1e-6 + gradient**2)
    assert expected[7] > 0.01
    np.testing.assert_allclose(bag(model).table, expected, rtol=1e-4)


def test_parameter_servers_send_each_row_of_a_batch_once():
    """The table's gradient has the same rows; a whole table would be sent with each step."""
    ids = random_ngrams()
    model, remote = build(), build()
    for each in (model, remote):
        bag(each).scale.assign(np.linspace(0.5, 2.0, BUCKETS))
        bag(each).table.assign(np.random.default_rng(0).normal(size=BUCKETS))
    bag(remote)._gathers_rows = True
    with tf.GradientTape() as tape:
        logit = remote({features.NGRAMS: ids}, training=True)
    np.testing.assert_allclose(logit, model({features.NGRAMS: ids}), atol=1e-5)
    gradient = tape.gradient(logit, bag(remote).table)
    assert sorted(gradient.indices.numpy()) == sorted(set(ids.flat_values.numpy()))
