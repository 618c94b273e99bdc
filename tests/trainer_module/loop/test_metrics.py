"""Losses and accuracies: means over Examples without padding."""

import math

import pytest
import tensorflow as tf

from trainer_module.loop import metrics

LABEL = tf.constant([[1.0], [0.0], [1.0], [0.0]])
LOGIT = tf.constant([[2.0], [1.0], [-1.0], [-3.0]])
LOSSES = [math.log1p(math.exp(x)) for x in (-2.0, 1.0, 1.0, -3.0)]
"""The losses of the four Examples; the first and the last prediction are right."""
CASES = [
    # the weights of the Examples, the losses of those with a weight, the right predictions
    (None, LOSSES, 2),
    ([1.0, 1.0, 1.0, 1.0], LOSSES, 2),
    ([1.0, 1.0, 0.0, 0.0], LOSSES[:2], 1),
]


@pytest.mark.parametrize(("weight", "losses", "right"), CASES)
def test_sums_and_means_ignore_padding(weight, losses, right):
    weight = weight and tf.constant(weight)
    sums = metrics.sums(LABEL, LOGIT, weight)
    assert sums["loss"].numpy() == pytest.approx([sum(losses), len(losses)])
    assert sums["accuracy"].numpy().tolist() == [right, len(losses)]
    mean = sum(losses) / len(losses)
    assert float(metrics.mean_loss(LABEL, LOGIT, weight)) == pytest.approx(mean)
    means = metrics.means({name: values.numpy() for name, values in sums.items()})
    assert means == {"loss": pytest.approx(mean), "accuracy": right / len(losses)}


@pytest.mark.parametrize(("weight", "losses", "right"), CASES)
def test_keras_computes_the_same_over_several_batches(weight, losses, right):
    weight = weight and tf.constant(weight)
    for metric in metrics.keras_metrics():
        for rows in (slice(0, 1), slice(1, 4)):
            metric.update_state(LABEL[rows], LOGIT[rows], None if weight is None else weight[rows])
        expected = {"loss": sum(losses) / len(losses), "accuracy": right / len(losses)}
        assert float(metric.result()) == pytest.approx(expected[metric.name])


def test_a_batch_without_examples_has_a_loss_of_0():
    assert float(metrics.mean_loss(LABEL, LOGIT, tf.zeros([4]))) == 0.0
    assert float(metrics.mean_loss(LABEL[:0], LOGIT[:0], None)) == 0.0
    assert metrics.means({"loss": (0.0, 0.0)}) == {"loss": 0.0}


def test_a_logit_of_0_is_negative():
    sums = metrics.sums(tf.constant([[0.0], [1.0]]), tf.zeros([2, 1]), None)
    assert sums["accuracy"].numpy().tolist() == [1.0, 2.0]


def test_several_logits_of_an_example_have_equal_weights():
    opposite = [math.log1p(math.exp(x)) for x in (2.0, -1.0, -1.0, 3.0)]
    logits = tf.concat([LOGIT, -LOGIT], axis=1)
    sums = metrics.sums(LABEL, logits, tf.constant([1.0, 1.0, 0.0, 0.0]))
    expected = (sum(LOSSES[:2]) + sum(opposite[:2])) / 2
    assert sums["loss"].numpy() == pytest.approx([expected, 2])
    assert sums["accuracy"].numpy().tolist() == [1.0, 2.0]
    means = {"loss": (sum(LOSSES) + sum(opposite)) / 8, "accuracy": 0.5}
    for metric in metrics.keras_metrics():
        metric.update_state(LABEL, logits)
        assert float(metric.result()) == pytest.approx(means[metric.name])
