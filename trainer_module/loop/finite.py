"""Checks that the losses and the weights of a training are finite."""

from __future__ import annotations

import math

import tensorflow as tf
import tf_keras

_REMEDY = "nothing was exported; a smaller training.learning_rate may help"


class NotFiniteError(ValueError):
    """A loss or a weight that is NaN or infinite; the message is one line with the step."""


def check_loss(name: str, loss: float, where: str) -> None:
    """Check that a loss is finite.

    Args:
      name: the name of the loss for the message, such as `eval loss`.
      loss: the loss.
      where: the position in the training for the message, such as `at step 3`.

    Raises:
      NotFiniteError: the loss is NaN or infinite.
    """
    if not math.isfinite(loss):
        raise NotFiniteError(f"the {name} is {loss} {where}, {_REMEDY}")


def check_updates(skipped: int, steps: int) -> None:
    """Check that the steps of a training with a scaled loss have changed the weights.

    Args:
      skipped: the number of steps whose update was skipped, because a gradient overflowed.
      steps: the number of all steps.

    Raises:
      NotFiniteError: all updates were skipped, so the weights are those before the first step.
    """
    if 0 < steps <= skipped:
        raise NotFiniteError(
            f"training.mixed_precision: float16: a gradient overflowed in each of the {steps} "
            "steps, so no weight has changed and nothing was exported; set bfloat16, or train for "
            "more steps, which begin with a smaller scale of the loss"
        )


def check_weights(model: tf_keras.Model, step: int) -> None:
    """Check that all weights of a model are finite.

    Args:
      model: the model.
      step: the number of steps done, for the message.

    Raises:
      NotFiniteError: a weight is NaN or infinite.
    """
    name = not_finite(model.variables)
    if name is not None:
        raise NotFiniteError(f"the weights {name} are not finite after step {step}, {_REMEDY}")


def not_finite(variables: list[tf.Variable]) -> str | None:
    """Return the name of a variable with a value that is NaN or infinite; None if all are finite.

    Each variable is checked on its own device, so a parameter server sends a single value for each.
    """
    for variable in variables:
        if not variable.dtype.is_floating:
            continue
        with tf.device(variable.device):
            is_finite = tf.reduce_all(tf.math.is_finite(variable))
        if not is_finite:
            return str(variable.name)
    return None
