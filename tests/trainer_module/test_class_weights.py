"""`training.class_weights`: the weights of a majority of any class, and of a missing class."""

import numpy as np
import pytest
import tensorflow as tf

from preprocessing.labels import Labels
from trainer_module import models
from trainer_module.models import loss, softmax_loss

LOGITS = [0.3, -0.2, 0.1, 0.5, -0.4]


def weights(*counts):
    """Return the weight of an Example of each class, of which the train split has `counts`."""
    classes = len(counts)
    labels = Labels(tuple(f"class {number}" for number in range(classes)))
    plain = loss if labels.is_binary else softmax_loss
    label = tf.reshape(tf.range(classes, dtype=tf.float32), [-1, 1])
    logits = tf.tile([LOGITS[: labels.logits]], [classes, 1])
    weighted = models.weighted_by_class(plain, np.array(counts, np.float64), labels)
    return weighted(label, logits).numpy() / plain(label, logits).numpy()


@pytest.mark.parametrize(
    "counts",
    [(300, 100), (100, 300), (50, 50), (3_000_000_000, 1), (1, 2, 4, 8, 1000), (7, 7, 7)],
)
def test_each_class_has_the_same_total_weight_and_the_mean_is_one(counts):
    totals = weights(*counts) * counts
    np.testing.assert_allclose(totals, sum(counts) / len(counts), rtol=1e-6)


@pytest.mark.parametrize(
    ("counts", "missing"), [((7, 0), 1), ((0, 7), 0), ((3, 4, 0, 5), 2), ((0, 4, 0), 0)]
)
def test_a_class_without_examples_is_named(counts, missing):
    with pytest.raises(ValueError, match=rf"has no Example of the class class {missing}; add"):
        weights(*counts)
