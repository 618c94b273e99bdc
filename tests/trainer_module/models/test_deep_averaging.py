"""The model deep_averaging."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from preprocessing import features
from preprocessing.labels import SENTIMENT, Labels
from preprocessing.settings import Transform
from trainer_module.models import bags, deep_averaging

TRANSFORM = Transform(ngram_buckets=64)
FIVE = Labels(tuple("12345"), is_ordered=True)
IDS = tf.ragged.constant([[3, 5, 3], [], [9]], dtype=tf.int64, ragged_rank=1)
PADDED = tf.constant([[3, 5, 3, -1], [-1] * 4, [9, -1, -1, -1]], tf.int64)


def build(labels=FIVE, *, static_shapes=False, **hyperparameters):
    tf_keras.utils.set_random_seed(1)
    chosen = deep_averaging.Hyperparameters(**{"width": 8, **hyperparameters})
    model = deep_averaging.build(chosen, TRANSFORM, labels, static_shapes=static_shapes)
    kernel = model.get_layer("logit").kernel
    kernel.assign(tf.random.stateless_normal(kernel.shape, (1, 2)))
    return model


@pytest.mark.parametrize("labels", [SENTIMENT, FIVE], ids=["2", "5"])
def test_the_logits_are_those_of_the_formula(labels):
    model = build(labels)
    bag, dense = model.get_layer(bags.BAG), model.get_layer("logit")
    bag.scale.assign(np.linspace(0.5, 2, 64, dtype=np.float32))
    table = bag.scaled_table()
    sums = np.stack([2 * table[3] + table[5], 0 * table[0], table[9]])
    factors = (np.array([3, 1, 1]) / 256) ** -0.5
    hidden = np.maximum(sums * factors[:, np.newaxis], 0)
    expected = hidden @ dense.kernel.numpy()
    assert expected.shape == (3, labels.logits)
    np.testing.assert_allclose(model({features.NGRAMS: IDS}), expected, rtol=1e-4, atol=1e-5)


def test_ragged_and_padded_ngrams_have_the_same_logits():
    ragged, padded = build()({features.NGRAMS: IDS}), build(static_shapes=True)
    np.testing.assert_allclose(padded({features.NGRAMS: PADDED}), ragged, rtol=1e-5, atol=1e-6)


def test_an_empty_batch_has_no_logits():
    empty = tf.ragged.constant([], dtype=tf.int64, ragged_rank=1)
    assert build()({features.NGRAMS: empty}, training=True).shape == (0, 5)


@pytest.mark.parametrize("static_shapes", [False, True])
def test_dropped_ngrams_are_left_out_and_the_others_count_more(static_shapes):
    model = build(static_shapes=static_shapes, ngram_dropout=0.5, dropout=0.0)
    bag = model.get_layer(bags.BAG)
    bag.table.assign(tf.ones_like(bag.table))
    inputs = tf.zeros([1, 256], tf.int64)
    if not static_shapes:
        inputs = tf.RaggedTensor.from_tensor(inputs)
    sums = np.array([bag(inputs, training=True)[0, 0] for _ in range(20)])
    # Each n-gram that is left counts twice.
    assert set(sums % 2) == {0}
    assert len(set(sums)) > 5
    assert 216 < sums.mean() < 296
    assert bag(inputs)[0, 0] == 256


def test_only_the_rows_of_the_batch_have_a_gradient():
    model = build(ngram_dropout=0.0)
    bag = model.get_layer(bags.BAG)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model({features.NGRAMS: IDS}, training=True))
    gradient = tape.gradient(loss, bag.table)
    assert isinstance(gradient, tf.IndexedSlices)
    assert set(gradient.indices.numpy()) <= {3, 5, 9}


def test_a_wide_table_has_fewer_rows_and_its_scale_those_counts(monkeypatch):
    monkeypatch.setattr(deep_averaging, "MAX_WEIGHTS", 8 * 10)
    model = build()
    bag = model.get_layer(bags.BAG)
    assert bag.table.shape == (10, 8)
    counts = np.zeros((5, 64))
    counts[0, [3, 13]] = 4, 2  # both are row 3
    counts[:, 4] = 2
    deep_averaging.adapt(model, counts)
    folded = np.zeros((5, 10))
    folded[0, 3] = 6
    folded[:, 4] = 2
    expected = bag.scale_from(tf.constant(folded, tf.float32)).numpy()
    mean = (expected * folded.sum(axis=0)).sum() / folded.sum()
    np.testing.assert_allclose(bag.scale, expected / mean, rtol=1e-5)
    assert bag.scale[3] > bag.scale[4]
    same = [model({features.NGRAMS: tf.ragged.constant([[id_]], tf.int64)}) for id_ in (3, 13, 63)]
    np.testing.assert_array_equal(same[0], same[1])
    np.testing.assert_array_equal(same[0], same[2])
