"""The steps on a model whose logits are its inputs."""

import math

import numpy as np
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


def make_model(*shape, loss=models.loss, hits=models.hits):
    """Return a model with inputs and logits of a shape without the batch; (): [1]."""
    inputs = tf_keras.Input(shape or [1])
    net = tf_keras.Model(inputs, tf_keras.layers.Activation("linear")(inputs))
    return Trainable(net, loss, hits)


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
    model = make_model(2)
    sums = step(model, tf.concat([LOGIT, -LOGIT], 1), weight=tf.constant([1.0, 1.0, 0.0, 0.0]))
    expected = (sum(LOSSES[:2]) + sum(opposite[:2])) / 2
    assert sums["loss"].numpy() == pytest.approx([expected, 2])
    assert sums["accuracy"].numpy().tolist() == [1.0, 2.0]


CLASSES = 5


def softmax_model(*parts):
    return make_model(*parts, CLASSES, loss=models.softmax_loss, hits=models.softmax_hits)


@pytest.mark.parametrize("parts", [(), (3,)], ids=["one part", "three parts"])
def test_of_many_classes_the_loss_is_the_cross_entropy_and_padding_has_no_effect(parts):
    logits = np.random.default_rng(0).normal(size=(4, *parts, CLASSES)).astype(np.float32)
    labels, weight = np.array([4, 0, 2, 1]), np.array([1, 1, 0, 1])
    each = logits.reshape(4, -1, CLASSES).astype(np.float64)
    chosen = each[np.arange(4), :, labels]
    losses = (np.log(np.exp(each).sum(axis=2)) - chosen).mean(axis=1)
    right = (each.argmax(axis=2) == labels[:, np.newaxis]).mean(axis=1)
    label = tf.constant(labels[:, np.newaxis], tf.float32)
    sums = step(softmax_model(*parts), logits, label, tf.constant(weight, tf.float32))
    assert sums["loss"].numpy() == pytest.approx([(losses * weight).sum(), 3], rel=1e-5)
    assert sums["accuracy"].numpy() == pytest.approx([(right * weight).sum(), 3], rel=1e-5)
    nothing = step(softmax_model(*parts), logits[:0], label[:0])
    assert nothing["loss"].numpy().tolist() == nothing["accuracy"].numpy().tolist() == [0, 0]


def test_of_equal_logits_the_first_class_is_predicted():
    sums = step(softmax_model(), tf.zeros([2, CLASSES]), tf.constant([[0.0], [1.0]]))
    assert sums["accuracy"].numpy().tolist() == [1.0, 2.0]


def test_very_large_logits_have_a_finite_loss():
    sums = step(softmax_model(), tf.constant([[3e4, 0.0, 0, 0, -3e4]]), tf.constant([[4.0]]))
    assert float(sums["loss"][0]) == pytest.approx(6e4)


RATE, DECAY = 0.1, 0.5


def test_a_step_follows_the_losses_of_the_layers():
    """The regularizer and the `add_loss` of a model of a user's project."""
    inputs = tf_keras.Input([1])
    dense = tf_keras.layers.Dense(
        1,
        use_bias=False,
        kernel_initializer="ones",
        kernel_regularizer=tf_keras.regularizers.L2(DECAY),
    )
    net = tf_keras.Model(inputs, tf_keras.layers.ActivityRegularization(l1=0.0)(dense(inputs)))
    model = Trainable(net, models.loss, models.hits)
    model.compile(tf_keras.optimizers.legacy.SGD(RATE))
    # For inputs of 0 the loss of the Examples does not depend on the weight.
    sums = model.train_sums((tf.zeros([4, 1]), LABEL, None))
    assert float(dense.kernel[0, 0]) == pytest.approx(1 - RATE * 2 * DECAY)
    assert float(step_means(sums)["loss"]) == pytest.approx(math.log(2))


@pytest.mark.parametrize(
    "layer",
    [
        tf_keras.layers.GaussianNoise(1.0),
        tf_keras.layers.GaussianDropout(0.5),
        tf_keras.layers.AlphaDropout(0.5),
        tf_keras.layers.SpatialDropout1D(0.5),
        tf_keras.layers.Dropout(0.5),
    ],
    ids=lambda layer: type(layer).__name__,
)
def test_the_noise_of_every_layer_is_another_in_each_step_and_the_same_after_a_resume(layer):
    inputs = tf_keras.Input([8, 2])
    net = tf_keras.Model(inputs, tf_keras.layers.Dense(1)(layer(inputs)))

    def noise(step):
        model = Trainable(net, models.loss, models.hits, seed=3)
        model.random.step = tf.constant(step, tf.int64)
        model.random.restart()
        return layer(tf.ones([4, 8, 2]), training=True).numpy()

    assert (noise(1) == noise(1)).all()
    assert (noise(1) != noise(2)).any()
