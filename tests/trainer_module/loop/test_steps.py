"""The steps on a model whose logits are its inputs, and the learning rate over the steps."""

import math

import pytest
import tensorflow as tf
import tf_keras

from trainer_module import models
from trainer_module.loop.steps import (
    FINAL_FRACTION,
    UNSCALED_BATCH,
    Trainable,
    make_schedule,
    means,
    step_means,
)
from trainer_module.settings import Training

LABEL = tf.constant([[1.0], [0.0], [1.0], [0.0]])
LOGIT = tf.constant([[2.0], [1.0], [-1.0], [-3.0]])
LOSSES = [math.log1p(math.exp(x)) for x in (-2.0, 1.0, 1.0, -3.0)]
"""The losses of the four Examples; the first and the last prediction are right."""


def make_model(logits=1):
    inputs = tf_keras.Input([logits])
    return Trainable(
        tf_keras.Model(inputs, tf_keras.layers.Activation("linear")(inputs)), models.loss
    )


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


# The learning rate.


def rates(training, steps, peak=0.4):
    """The learning rate of each of the first `steps` steps; the training has 20 in all."""
    made = make_schedule(training, peak, UNSCALED_BATCH, 20)
    return [float(made(step)) for step in range(steps)]


def test_the_rate_rises_over_the_warmup_and_may_stay():
    training = Training(warmup=0.25, schedule="constant")
    assert rates(training, 7) == pytest.approx([0.08, 0.16, 0.24, 0.32, 0.4, 0.4, 0.4])
    assert rates(Training(warmup=0.0, schedule="constant"), 20) == pytest.approx([0.4] * 20)
    assert rates(Training(warmup=0.0, schedule="cosine"), 1) == pytest.approx([0.4])


def test_a_cosine_falls_to_its_end_at_the_last_step_and_stays_there():
    made = make_schedule(Training(warmup=0.2, schedule="cosine"), 0.4, UNSCALED_BATCH, 20)
    low = 0.4 * FINAL_FRACTION
    # Four steps of warm-up and sixteen of the cosine, of which a quarter, a half and all are over.
    quarter = low + (0.4 - low) * (1 + math.cos(math.pi / 4)) / 2
    expected = {4: 0.4, 8: quarter, 12: (0.4 + low) / 2, 20: low, 25: low}
    assert {step: float(made(step)) for step in expected} == pytest.approx(expected)
    assert FINAL_FRACTION == 0.3, "docs/explanation/training.md has this number"


@pytest.mark.parametrize(
    ("scaling", "expected"), [("linear", 0.1), ("square_root", 0.2), ("none", 0.4)]
)
def test_the_rate_is_scaled_with_the_global_batch(scaling, expected):
    settings = {"learning_rate_scaling": scaling, "schedule": "constant", "warmup": 0.0}
    for training, own in (
        (Training(learning_rate=0.4, **settings), 9.0),
        (Training(**settings), 0.4),
    ):
        made = make_schedule(training, own, UNSCALED_BATCH // 4, 20)
        assert float(made(0)) == pytest.approx(expected)
