"""The two loops on a model that does not learn: its metrics show which batches were read."""

import functools
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from trainer_module import models
from trainer_module.loop.callbacks import StepCallback
from trainer_module.loop.checkpoints import State
from trainer_module.loop.loops import LOOPS, Plan
from trainer_module.loop.trainable import Trainable
from trainer_module.settings import Training

STEPS, EVAL_STEPS, EPOCHS = 3, 2, 3
EVALUATION = 50
"""The number in the first batch of the evaluation; the training's numbers begin with 0."""

each_loop = pytest.mark.parametrize("loop", LOOPS)


def batch(number):
    """Return a batch of one Example with the label 1, whose logit is a tenth of `number`."""
    return tf.cast(tf.fill([1, 1], number), tf.float32) / 10, tf.ones([1, 1])


def loss_of(numbers):
    return pytest.approx(np.mean(np.log1p(np.exp(-np.array(numbers) / 10))), abs=1e-6)


@functools.cache
def traced_model(steps_per_execution):
    """Return a model that all tests share and none changes, because tracing it takes a while."""
    inputs = tf_keras.Input([1])
    logit = tf_keras.layers.Dense(1, use_bias=False, kernel_initializer="ones")(inputs)
    model = Trainable(tf_keras.Model(inputs, logit), models.loss, models.hits)
    optimizer = tf_keras.optimizers.legacy.SGD(0.0)
    model.compile(optimizer, steps_per_execution=steps_per_execution)
    return model


def make_model(steps_per_execution=1):
    model = traced_model(steps_per_execution)
    model.stop_training = False
    return model


class Seen(StepCallback):
    """A callback that records the order of its calls, and the logs of each epoch."""

    def __init__(self, first_step, stop_after=None):
        super().__init__(first_step)
        self.events, self.epochs = [], {}
        self._stop_after = stop_after

    def on_epoch_begin(self, epoch, logs=None):
        self.events.append(("epoch", epoch))

    def on_train_batch_end(self, batch, logs=None):
        super().on_train_batch_end(batch, logs)
        assert np.isfinite(float(logs["loss"]))
        self.events.append(("step", self.step))

    def on_test_begin(self, logs=None):
        self.events.append(("evaluation", self.step))

    def on_test_batch_end(self, batch, logs=None):
        self.events.append(("eval step", batch + 1))

    def on_epoch_end(self, epoch, logs=None):
        super().on_epoch_end(epoch, logs)
        self.events.append(("end", epoch))
        self.epochs[epoch] = dict(logs)
        if epoch == self._stop_after:
            self.model.stop_training = True

    def of(self, kind):
        return [number for name, number in self.events if name == kind]


def evaluation(epoch):
    """Return the events of an evaluation."""
    steps = [("eval step", step) for step in range(1, EVAL_STEPS + 1)]
    return [("evaluation", (epoch + 1) * STEPS), *steps, ("end", epoch)]


def inputs():
    numbers = tf.data.Dataset.range
    return SimpleNamespace(
        epochs=EPOCHS,
        steps=STEPS,
        eval_steps=EVAL_STEPS,
        train_dataset=lambda done: numbers(done, 1000).map(batch),
        # Endless: each evaluation begins anew.
        eval_dataset=lambda: numbers(EVALUATION, 1000).map(batch),
        examples_of_step=lambda step: 1,
    )


def run(loop, first_step=0, state=None, *, stop_after=None, **options):
    plan = Plan(inputs(), Training(**options), state or State(), first_step)
    seen = Seen(first_step, stop_after)
    LOOPS[loop](make_model(**options), plan, [seen])
    return seen


def check_evaluation(logs):
    assert logs["val_loss"] == loss_of(range(EVALUATION, EVALUATION + EVAL_STEPS))
    assert logs["val_accuracy"] == 1.0


@pytest.mark.parametrize(
    ("loop", "first_step"),
    [("custom", 0), ("custom", 4), ("custom", 9), ("fit", 0), ("fit", 3), ("fit", 5)],
)
def test_a_training_takes_the_steps_that_are_left(loop, first_step):
    seen = run(loop, first_step)
    events = []
    for epoch in range(first_step // STEPS, EPOCHS):
        numbers = range(max(first_step, epoch * STEPS), (epoch + 1) * STEPS)
        events += [("epoch", epoch), *(("step", number + 1) for number in numbers)]
        events += evaluation(epoch)
        assert seen.epochs[epoch]["loss"] == loss_of(numbers), epoch
        check_evaluation(seen.epochs[epoch])
    assert seen.events == events


@each_loop
def test_a_stop_after_an_epoch_is_the_end(loop):
    """Here after an epoch that was interrupted."""
    first_step = 4
    seen = run(loop, first_step, State(history=[{}]), stop_after=1)
    assert list(seen.epochs)[-1] == 1
    assert seen.of("step") == list(range(first_step + 1, 2 * STEPS + 1))
    # Nor does a training that is resumed after it take more steps.
    assert run(loop, 2 * STEPS, State(history=[{}] * 2, stopped=True)).events == []


@each_loop
def test_callbacks_are_called_once_for_several_steps(loop):
    seen = run(loop, steps_per_execution=2)
    assert seen.of("step") == [2, 3, 5, 6, 8, 9]
    assert seen.epochs[1]["loss"] == loss_of([3, 4, 5])
    check_evaluation(seen.epochs[1])
