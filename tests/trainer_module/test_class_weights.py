"""`training.class_weights`: the weights of frequent and of rare classes, and of a missing class."""

import numpy as np
import pytest
import tensorflow as tf

from preprocessing.labels import SENTIMENT, Labels
from trainer_module import models

LABELS = tf.constant([[0.0], [1.0]])
LOGITS = tf.constant([[0.3], [-0.2]])


def weights(negatives, positives):
    """Return the weight of a negative and of a positive Example."""
    counts = np.array([negatives, positives], np.float64)
    loss = models.weighted_by_class(models.loss, counts, SENTIMENT)
    plain = models.loss(LABELS, LOGITS).numpy()
    return (loss(LABELS, LOGITS).numpy() / plain).tolist()


@pytest.mark.parametrize(
    ("negatives", "positives"), [(300, 100), (100, 300), (50, 50), (3_000_000_000, 1)]
)
def test_each_class_has_the_same_total_weight_and_the_mean_is_one(negatives, positives):
    negative, positive = weights(negatives, positives)
    total = negatives + positives
    assert negative * negatives == pytest.approx(total / 2)
    assert positive * positives == pytest.approx(total / 2)


@pytest.mark.parametrize(
    ("negatives", "positives", "missing"), [(7, 0, "positive"), (0, 7, "negative")]
)
def test_a_class_without_reviews_is_named(negatives, positives, missing):
    with pytest.raises(ValueError, match=f"the train split has no {missing} "):
        weights(negatives, positives)


TOPICS = Labels(("billing", "delivery", "other"))


def test_each_of_three_classes_has_the_same_total_weight_and_the_mean_is_one():
    counts = np.array([600, 30, 270], np.float64)
    loss = models.weighted_by_class(models.softmax_loss, counts, TOPICS)
    labels = tf.constant([[0.0], [1.0], [2.0]])
    logits = tf.constant([[0.3, -0.2, 1.0], [0.0, 0.5, 0.1], [2.0, -1.0, 0.0]])
    weights = loss(labels, logits).numpy() / models.softmax_loss(labels, logits).numpy()
    assert weights * counts == pytest.approx([300, 300, 300])


def test_a_class_of_three_without_examples_is_named():
    counts = np.array([600, 0, 270], np.float64)
    with pytest.raises(ValueError, match="the train split has no delivery "):
        models.weighted_by_class(models.softmax_loss, counts, TOPICS)
