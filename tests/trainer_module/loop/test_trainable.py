"""The steps on a model whose logits are its inputs."""

import math

import pytest
import tensorflow as tf
import tf_keras

from trainer_module import models
from trainer_module.loop.sums import means, step_means
from trainer_module.loop.trainable import Trainable

LABEL = tf.constant([[1.0], [0.0], [1.0], [0.0]])
LOGIT = tf.constant([[2.0], [1.0], [-1.0], [-3.0]])
LOSSES = [math.log1p(math.exp(x)) for x in (-2.0, 1.0, 1.0, -3.0)]
"""The losses of the four Examples; the first and the last prediction are right."""


def make_model(logits=1):
    inputs = tf_keras.Input([logits])
    net = tf_keras.Model(inputs, tf_keras.layers.Activation("linear")(inputs))
    return Trainable(net, models.loss, models.hits)


def step(model, logit=LOGIT, label=LABEL, weight=None):
    return model.test_sums((logit, label, weight))


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
