"""The steps on a model whose logits are its inputs: losses and accuracies without padding."""

import math

import pytest
import tensorflow as tf
import tf_keras

from trainer_module import models
from trainer_module.loop.steps import Trainable, means, metric_values, step_means

LABEL = tf.constant([[1.0], [0.0], [1.0], [0.0]])
LOGIT = tf.constant([[2.0], [1.0], [-1.0], [-3.0]])
LOSSES = [math.log1p(math.exp(x)) for x in (-2.0, 1.0, 1.0, -3.0)]
"""The losses of the four Examples; the first and the last prediction are right."""
CASES = [
    # the weights of the Examples, the losses of those with a weight, the right predictions
    (None, LOSSES, 2),
    ([1.0, 1.0, 0.0, 0.0], LOSSES[:2], 1),
]


def make_model(logits=1):
    inputs = tf_keras.Input([logits])
    return Trainable(
        tf_keras.Model(inputs, tf_keras.layers.Activation("linear")(inputs)), models.loss
    )


def step(model, logit=LOGIT, label=LABEL, weight=None):
    return model.test_sums((logit, label, weight))


@pytest.mark.parametrize(("weight", "losses", "right"), CASES)
def test_sums_and_means_ignore_padding(weight, losses, right):
    sums = step(make_model(), weight=weight and tf.constant(weight))
    assert sums["loss"].numpy() == pytest.approx([sum(losses), len(losses)])
    assert sums["accuracy"].numpy().tolist() == [right, len(losses)]
    mean = sum(losses) / len(losses)
    assert float(step_means(sums)["loss"]) == pytest.approx(mean)
    expected = {"loss": pytest.approx(mean), "accuracy": right / len(losses)}
    assert means({name: values.numpy() for name, values in sums.items()}) == expected


@pytest.mark.parametrize(("weight", "losses", "right"), CASES)
def test_the_metrics_are_means_over_several_batches(weight, losses, right):
    model = make_model()
    for rows in (slice(0, 1), slice(1, 4)):
        step(model, LOGIT[rows], LABEL[rows], weight and tf.constant(weight[rows]))
    expected = {"loss": sum(losses) / len(losses), "accuracy": right / len(losses)}
    assert metric_values(model) == pytest.approx(expected)
    model.reset_metrics()
    assert metric_values(model) == {"loss": 0.0, "accuracy": 0.0}
    assert model.variables == []


def test_a_batch_without_examples_has_a_loss_of_0():
    model = make_model()
    assert float(step_means(step(model, weight=tf.zeros([4])))["loss"]) == 0.0
    assert float(step_means(step(model, LOGIT[:0], LABEL[:0]))["loss"]) == 0.0
    assert means({"loss": (0.0, 0.0)}) == {"loss": 0.0}


def test_a_logit_of_0_is_negative():
    sums = step(make_model(), tf.zeros([2, 1]), tf.constant([[0.0], [1.0]]))
    assert sums["accuracy"].numpy().tolist() == [1.0, 2.0]


def test_several_logits_of_an_example_have_equal_weights():
    opposite = [math.log1p(math.exp(x)) for x in (2.0, -1.0, -1.0, 3.0)]
    model = make_model(logits=2)
    sums = step(model, tf.concat([LOGIT, -LOGIT], 1), weight=tf.constant([1.0, 1.0, 0.0, 0.0]))
    expected = (sum(LOSSES[:2]) + sum(opposite[:2])) / 2
    assert sums["loss"].numpy() == pytest.approx([expected, 2])
    assert sums["accuracy"].numpy().tolist() == [1.0, 2.0]
