"""The n-gram model: its layer, its fixed scale, and every form in which it is trained."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from pydantic import ValidationError

from preprocessing import features
from preprocessing.labels import SENTIMENT, Labels
from preprocessing.settings import MAX_WEIGHTS, Transform, ngram_rows
from trainer_module import models
from trainer_module.loop.trainable import Trainable
from trainer_module.models import bags, ngram_linear

BUCKETS = 50
FINITE = st.floats(-1e6, 1e6, width=32)


THREE = Labels(("bill", "delivery", "refund"))


def build(buckets=BUCKETS, length_power=0.5, labels=SENTIMENT, **options):
    hyperparameters = ngram_linear.Hyperparameters(length_power=length_power)
    return ngram_linear.build(hyperparameters, Transform(ngram_buckets=buckets), labels, **options)


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


@pytest.mark.parametrize("labels", [SENTIMENT, THREE], ids=["two", "three"])
@pytest.mark.parametrize("name", ["scale_floor", "scale_smoothing"])
def test_the_scale_is_finite_and_not_zero_for_every_value_that_is_allowed(name, labels):
    for refused in (1e-7, 1e7):
        with pytest.raises(ValidationError, match=rf"{name}\n.* (greater|less) than or equal to"):
            ngram_linear.Hyperparameters(**{name: refused})
    counts = np.zeros([labels.number, 4])
    counts[:2] = [[1e9, 0, 3, 0], [0, 1, 3, 0]]
    for value in (1e-6, 1e6):
        hyperparameters = ngram_linear.Hyperparameters(**{name: value})
        model = ngram_linear.build(hyperparameters, Transform(ngram_buckets=4), labels)
        ngram_linear.adapt(model, counts)
        scale = bag(model).scale.numpy()
        assert np.isfinite(scale).all() and (scale > 0).all()


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
    small, base = ngram_linear.exported(model, hyperparameters)
    assert base is small
    assert [weight.dtype for weight in small.weights if weight.shape == [BUCKETS]] == [tf.uint8]
    ids = random_ngrams()
    inputs = {features.NGRAMS: ids.to_tensor(-1, shape=[None, 15]) if static_shapes else ids}
    np.testing.assert_allclose(small(inputs), model(inputs), atol=0.05)


@pytest.mark.parametrize("static_shapes", [False, True])
def test_the_served_model_has_the_same_logits_bit_for_bit(static_shapes):
    model = build(static_shapes=static_shapes)
    random = np.random.default_rng(0)
    bag(model).table.assign(random.normal(size=BUCKETS))
    bag(model).scale.assign(random.uniform(0.3, 3, BUCKETS))
    bag(model).bias.assign([0.5])
    served, base = ngram_linear.exported(model, ngram_linear.Hyperparameters())
    assert base is model
    assert [weight.shape for weight in served.weights] == [[BUCKETS], [1]]
    ids = random_ngrams()
    inputs = {features.NGRAMS: ids.to_tensor(-1, shape=[None, 15]) if static_shapes else ids}
    np.testing.assert_array_equal(served(inputs), model(inputs))


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
    bag(remote)._is_remote = True
    with tf.GradientTape() as tape:
        logit = remote({features.NGRAMS: ids}, training=True)
    np.testing.assert_allclose(logit, model({features.NGRAMS: ids}), atol=1e-5)
    gradient = tape.gradient(logit, bag(remote).table)
    assert sorted(gradient.indices.numpy()) == sorted(set(ids.flat_values.numpy()))


def three_classes(**options):
    """Return a model of three classes with random weights, and its dense weights and bias."""
    model = build(labels=THREE, **options)
    random = np.random.default_rng(1)
    table, scale = random.normal(size=[BUCKETS, 3]), random.uniform(0.5, 2.0, BUCKETS)
    bag(model).table.assign(table)
    bag(model).scale.assign(scale)
    bag(model).bias.assign([0.5, 0.0, -0.5])
    return model, table * scale[:, None], np.array([0.5, 0.0, -0.5])


def dense_counts(ids):
    """Return the occurrences of each n-gram in each review over the root of its length."""
    counts = np.array([np.bincount(row, minlength=BUCKETS) for row in ids.to_list()], np.float64)
    return counts / np.sqrt(np.maximum(counts.sum(axis=1, keepdims=True), 1) / 256)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("static_shapes", [False, True])
def test_a_bag_of_three_classes_is_a_product_of_matrices(static_shapes, training):
    model, weights, bias = three_classes(static_shapes=static_shapes)
    ids = random_ngrams()
    inputs = ids.to_tensor(-1, shape=[None, 15]) if static_shapes else ids
    with tf.GradientTape() as tape:
        logits = model({features.NGRAMS: inputs}, training=training)
        loss = tf.reduce_mean(models.softmax_loss(tf.constant([[1.0]] * 40), logits))
    x = dense_counts(ids)
    expected = x @ weights + bias
    np.testing.assert_allclose(logits, expected, atol=1e-4)
    probabilities = np.exp(expected) / np.exp(expected).sum(axis=1, keepdims=True)
    reference = x.T @ (probabilities - [0, 1, 0]) / 40 * bag(model).scale.numpy()[:, None]
    gradient = tf.convert_to_tensor(tape.gradient(loss, bag(model).table))
    np.testing.assert_allclose(gradient, reference, atol=1e-5)


def test_a_step_of_three_classes_updates_the_rows_of_the_batch_alone():
    model, _, _ = three_classes()
    ids = tf.RaggedTensor.from_row_lengths(tf.constant([7, 9, 7], tf.int64), [2, 1])
    with tf.GradientTape() as tape:
        logits = model({features.NGRAMS: ids}, training=True)
    gradient = tape.gradient(logits, bag(model).table)
    assert gradient.indices.numpy().tolist() == [7, 9]


def test_the_scale_of_three_classes_is_the_divergence_from_all_ngrams():
    model = build(3, labels=THREE)
    # The classes have 1/2, 1/4 and 1/4 of all 16 occurrences; the smoothing adds as much of each.
    counts = [[4.0, 4.0, 0.0], [0.0, 2.0, 2.0], [0.0, 2.0, 2.0]]
    ngram_linear.adapt(model, np.array(counts))
    first = 0.9 * np.log(0.9 / 0.5) + 2 * 0.05 * np.log(0.05 / 0.25)
    third = 0.1 * np.log(0.1 / 0.5) + 2 * 0.45 * np.log(0.45 / 0.25)
    scale = 0.3 + np.array([first, 0.0, third])
    mean = (4 * scale[0] + 8 * scale[1] + 4 * scale[2]) / 16
    np.testing.assert_allclose(bag(model).scale, scale / mean, rtol=1e-5)


def test_a_class_without_ngrams_does_not_spoil_the_scale():
    model = build(2, labels=THREE)
    ngram_linear.adapt(model, np.array([[1.0, 0.0], [0.0, 3.0], [0.0, 0.0]]))
    scale = bag(model).scale.numpy()
    assert scale[0] > scale[1] > 0


@pytest.mark.parametrize("static_shapes", [False, True])
def test_a_compressed_model_of_three_classes_has_a_byte_for_each_weight(static_shapes):
    model, _, _ = three_classes(static_shapes=static_shapes)
    small, _ = ngram_linear.exported(model, ngram_linear.Hyperparameters(compressed=True))
    assert bag(small).places.dtype == tf.uint8
    assert bag(small).places.shape == [BUCKETS, 3]
    ids = random_ngrams()
    inputs = {features.NGRAMS: ids.to_tensor(-1, shape=[None, 15]) if static_shapes else ids}
    np.testing.assert_allclose(small(inputs), model(inputs), atol=0.7)
    probabilities = [tf.nn.softmax(each(inputs)).numpy() for each in (small, model)]
    np.testing.assert_allclose(*probabilities, atol=0.02)


@pytest.mark.parametrize("static_shapes", [False, True])
def test_of_many_classes_several_ngrams_share_a_row(monkeypatch, static_shapes):
    monkeypatch.setattr("preprocessing.settings.MAX_WEIGHTS", 3 * 20)
    model = build(labels=THREE, static_shapes=static_shapes)
    assert bag(model).table.shape == [13, 3], "50 halved twice"
    bag(model).table.assign(np.arange(39).reshape(13, 3))
    ids = tf.constant([[0], [13], [47], [8]], tf.int64)
    inputs = ids if static_shapes else tf.RaggedTensor.from_tensor(ids)
    first, other, high, low = model({features.NGRAMS: inputs}).numpy()
    assert (first == other).all() and (high == low).all() and (first != high).any()


def test_the_rows_are_limited_by_the_weights_of_more_than_two_classes():
    def rows(classes, buckets=2**20):
        return ngram_rows(buckets, Labels(tuple(map(str, range(classes)))))

    assert rows(2, 2**30) == 2**30
    assert rows(32) == 2**20
    assert rows(33) == 2**19
    assert rows(1000) == 2**15
    assert 1000 * rows(1000) <= MAX_WEIGHTS
    assert rows(1000, 3 * 2**16) == 3 * 2**13


def test_two_classes_have_the_bag_of_one_column():
    assert type(bag(build())) is bags.NgramBag
    assert bag(build()).table.shape == [BUCKETS]
