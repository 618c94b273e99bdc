"""The architectures, one module each. To add one, add a module, and its name in the settings.

A module contains
  Hyperparameters: the keys of `training.hyperparameters`, with their types and defaults.
  FEATURES: the transformed features that the model reads.
  LEARNING_RATE: the default learning rate, at a global batch of 1024.
  SEARCH_SPACE: the values that the Tuner tries.
  build(hyperparameters, transform, static_shapes): returns the tf_keras.Model, whose output is the
    logit of positive, float32 [batch, 1]. In a training, a model with several parts returns a logit
    for each part, and each part is trained on its own loss. The logit of a review must not depend
    on the width of its batch. With `static_shapes` the width is the maximum, and XLA can compile
    the model.
  optimizer(learning_rate): returns the optimizer. It must update a variable by one operation that
    locks the variable, because under parameter servers several workers update it at the same time.
  loss(label, logit): optional; replaces `loss` of this module.
  adapt(model, counts): optional; computes weights that gradients do not train, from the occurrences
    of each n-gram in the negative and the positive reviews of the train split, [2, buckets].
  exported(model, hyperparameters): optional; returns the model that is exported instead.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras
from pydantic import ValidationError

from core.settings import first_problem
from preprocessing.features import CLASSES
from preprocessing.settings import Transform
from trainer_module.settings import Training

Loss = Callable[[tf.Tensor, tf.Tensor], tf.Tensor]
"""A function of label, float32 [batch, 1], and logits, float32 [batch, logits], that returns the
loss of each Example, float32 [batch]."""


@dataclass(frozen=True)
class Architecture:
    """The architecture of a training: a module of this package, with its hyperparameters applied.

    Attributes:
      features: the names of the transformed features that the model reads.
      learning_rate: the default learning rate, at a global batch of 1024.
      search_space: name of a hyperparameter -> the values that the Tuner tries.
      loss: the loss of each Example.
      build: (settings of Transform, `static_shapes=False`) -> the model, created in the current
        strategy and precision.
      optimizer: (learning rate or schedule) -> the optimizer.
      adapt: (model, counts of n-grams by class, [2, buckets]) -> None, sets the weights that
        gradients do not train; None: the model has no such weights.
      exported: (trained model of `plain_model`) -> the model that is exported.
    """

    features: tuple[str, ...]
    learning_rate: float
    search_space: dict[str, Any]
    loss: Loss
    build: Callable[..., tf_keras.Model]
    optimizer: Callable[[Any], tf_keras.optimizers.Optimizer]
    adapt: Callable[[tf_keras.Model, np.ndarray], None] | None
    exported: Callable[[tf_keras.Model], tf_keras.Model]

    def plain_model(self, transform: Transform) -> tf_keras.Model:
        """Build the model to export: on the CPU, in float32, for dynamic shapes.

        Call this outside any strategy.

        Args:
          transform: the settings of the features.
        """
        with precision("float32"), tf.device("/CPU:0"):
            return self.build(transform)


def resolve(training: Training) -> Architecture:
    """Return the architecture of `training.model` with `training.hyperparameters`.

    Args:
      training: the settings.

    Raises:
      ValueError: the model has no such hyperparameter, or does not allow its value.
    """
    module, chosen = load(training.model), hyperparameters(training)

    def exported(model: tf_keras.Model) -> tf_keras.Model:
        return module.exported(model, chosen) if hasattr(module, "exported") else model

    return Architecture(
        features=module.FEATURES,
        learning_rate=module.LEARNING_RATE,
        search_space=module.SEARCH_SPACE,
        loss=getattr(module, "loss", loss),
        build=partial(module.build, chosen),
        optimizer=module.optimizer,
        adapt=getattr(module, "adapt", None),
        exported=exported,
    )


def hyperparameters(training: Training) -> Any:
    """Return `training.hyperparameters` as the Hyperparameters of `training.model`.

    Raises:
      ValueError: the model has no such hyperparameter, or does not allow its value.
    """
    known = load(training.model).Hyperparameters
    try:
        return known.model_validate(training.hyperparameters)
    except ValidationError as error:
        problem = first_problem(error, known, "training.hyperparameters")
        raise ValueError(f"{problem} (training.model is {training.model})") from None


def load(name: str) -> ModuleType:
    """Return the module of a model.

    Args:
      name: a value of `training.model`.
    """
    return importlib.import_module(f"{__name__}.{name}")


def loss(label: tf.Tensor, logit: tf.Tensor) -> tf.Tensor:
    """Return the loss of each Example, [batch]: the mean binary cross-entropy over its logits.

    Args:
      label: float32 [batch, 1].
      logit: float32 [batch, logits].
    """
    each = tf.broadcast_to(label, tf.shape(logit))
    return tf_keras.losses.binary_crossentropy(each, logit, from_logits=True)


def weighted_by_class(loss: Loss, counts: np.ndarray) -> Loss:
    """Return `loss` multiplied by the weight of the class of each Example.

    The weights are computed from the whole train split, over which their mean is 1. So the loss is
    still a mean over Examples, however these are divided into batches, replicas and processes.

    Args:
      loss: the loss of each Example.
      counts: the numbers of negative and positive reviews in the train split, float64 [2].

    Raises:
      ValueError: a class has no reviews.
    """
    if not counts.all():
        missing = CLASSES[int(counts[0] > 0)]
        raise ValueError(
            f"training.class_weights: balanced, but the train split has no {missing} reviews; add "
            "some, or set none"
        )
    negative, positive = (counts.sum() / (2 * counts)).tolist()
    return lambda label, logit: loss(label, logit) * tf.where(label[:, 0] > 0, positive, negative)


@contextlib.contextmanager
def precision(policy: str) -> Iterator[None]:
    """Set the policy with which Keras creates layers and models in the context.

    Keras reads the policy from a global variable, which is restored afterwards.

    Args:
      policy: the name of a Keras policy, such as `mixed_bfloat16`.
    """
    before = tf_keras.mixed_precision.global_policy()
    tf_keras.mixed_precision.set_global_policy(policy)
    try:
        yield
    finally:
        tf_keras.mixed_precision.set_global_policy(before)
