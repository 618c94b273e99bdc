"""The architectures, one module each. To add one, add a module and its name in the settings.

A module has
  Hyperparameters: the keys of `training.hyperparameters`, with their types and defaults.
  FEATURES: the transformed features that the model reads.
  LEARNING_RATE: the default learning rate, at a global batch of 1024.
  SEARCH_SPACE: the values that the Tuner tries.
  build(hyperparameters, transform, static_shapes): returns the tf_keras.Model, whose output is the
    logit of positive, float32 [batch, 1]. In a training it may be several logits, of parts that are
    trained each for itself. A review's logit does not depend on the width of its batch. With
    `static_shapes` that width is the maximum, and XLA can compile the model.
  optimizer(learning_rate): returns the optimizer, whose update of a variable is one operation that
    locks it: under parameter servers several workers update a variable at the same time.
  loss(label, logit): optional; replaces `loss` of this module.
  adapt(model, counts): optional; fits weights that are not trained by gradients, to the occurrences
    of each n-gram in the negative and the positive reviews of the train split, [2, buckets].
  exported(model, hyperparameters): optional; returns the model that is exported instead.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

import tensorflow as tf
import tf_keras
from pydantic import ValidationError

from core.settings import first_problem
from trainer_module.settings import Training


def load(name: str) -> ModuleType:
    """Return the module of the model `name`, a value of `training.model`."""
    return importlib.import_module(f"{__name__}.{name}")


def loss(label: tf.Tensor, logit: tf.Tensor) -> tf.Tensor:
    """Return the loss of each Example, [batch]: the mean binary cross-entropy over its logits.

    Args:
      label: float32 [batch, 1].
      logit: float32 [batch, logits].
    """
    each = tf.broadcast_to(label, tf.shape(logit))
    return tf_keras.losses.binary_crossentropy(each, logit, from_logits=True)


def hyperparameters(training: Training) -> Any:
    """Return `training.hyperparameters` as the model's own Hyperparameters."""
    known = load(training.model).Hyperparameters
    try:
        return known.model_validate(training.hyperparameters)
    except ValidationError as error:
        problem = first_problem(error, known, "training.hyperparameters")
        raise ValueError(f"{problem} (training.model is {training.model})") from None
