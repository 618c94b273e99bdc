"""The architectures, one module each. A user's project has further ones, see `own`.

A module contains
  Hyperparameters: the keys of `training.hyperparameters`, with their types and defaults.
  FEATURES: the transformed features that the model reads.
  LEARNING_RATE: the default learning rate, at a global batch of 1024.
  SEARCH_SPACE: the values that the Tuner tries.
  build(hyperparameters, transform, labels, static_shapes): returns the tf_keras.Model, whose output
    has `labels.logits` logits, float32 [batch, logits]. In a training it may be [batch, parts,
    logits], of parts that are trained each for itself. A review's logits do not depend on the width
    of its batch. With `static_shapes` that width is the maximum, and XLA can compile the model.
  optimizer(learning_rate): returns the optimizer, whose update of a variable is one operation that
    locks it: under parameter servers several workers update a variable at the same time.
  loss(label, logits): optional; replaces `loss` or `softmax_loss` of this module.
  adapt(model, counts): optional; fits weights that are not trained by gradients, to the occurrences
    of each n-gram in the reviews of each class of the train split, [classes, rows]; see
    `preprocessing.settings.ngram_rows`.
  exported(model, hyperparameters): optional; returns `Exported`, with a model that is served in
    place of the trained one.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
import tf_keras
from pydantic import ValidationError

from core.code_file import CodeError, CodeFile, about
from core.settings import first_problem
from preprocessing.labels import Labels
from preprocessing.settings import Transform, ngram_rows
from trainer_module.models import own
from trainer_module.settings import Training

Loss = Callable[[tf.Tensor, tf.Tensor], tf.Tensor]
"""A function of label, float32 [batch, 1], and logits, float32 [batch, logits] or [batch, parts,
logits], that returns the loss of each Example, float32 [batch]. `Architecture.hits` has this form
too."""


class Exported(NamedTuple):
    """The two models of a SavedModel, which may be the same.

    Attributes:
      served: the model that the signatures compute.
      base: the model with the weights from which a warm start continues.
    """

    served: tf_keras.Model
    base: tf_keras.Model


@dataclass(frozen=True)
class Architecture:
    """The architecture of a training: a module of this package, with its hyperparameters applied.

    Attributes:
      features: the names of the transformed features that the model reads.
      learning_rate: the default learning rate, at a global batch of 1024.
      labels: the classes.
      loss: the loss of each Example.
      hits: whether the predicted label is right, as 0 or 1; the mean over parts.
      build: (settings of Transform, `static_shapes=False`) -> the model, created in the current
        strategy and precision.
      optimizer: (learning rate or schedule) -> the optimizer.
      adapt: (model, counts of n-grams by class, [classes, rows]) fits the weights of the model
        that are not trained; None: it has none.
      exported: (trained model of `plain_model`) -> what is exported.
    """

    features: tuple[str, ...]
    learning_rate: float
    labels: Labels
    loss: Loss
    hits: Loss
    build: Callable[..., tf_keras.Model]
    optimizer: Callable[[Any], tf_keras.optimizers.Optimizer]
    adapt: Callable[[tf_keras.Model, np.ndarray], None] | None
    exported: Callable[[tf_keras.Model], Exported]

    def plain_model(self, transform: Transform) -> tf_keras.Model:
        """Build the model to export: on the CPU, in float32, for dynamic shapes.

        Call this outside any strategy.

        Args:
          transform: the settings of the features.
        """
        with precision("float32"), tf.device("/CPU:0"):
            return self.build(transform, self.labels)


def resolve(training: Training, labels: Labels, file: CodeFile | None = None) -> Architecture:
    """Return the architecture of `training.model` with `training.hyperparameters`.

    Args:
      training: the settings.
      labels: the classes.
      file: the file of the model in a user's project; None: a model of the package.

    Raises:
      ValueError: the model has no such hyperparameter, or does not allow its value.
      CodeError: the file has an error.
    """
    module, chosen = load(training.model, file), hyperparameters(training, file)

    def exported(model: tf_keras.Model) -> Exported:
        if hasattr(module, "exported"):
            return module.exported(model, chosen)
        return Exported(served=model, base=model)

    architecture = Architecture(
        features=tuple(module.FEATURES),
        learning_rate=module.LEARNING_RATE,
        labels=labels,
        loss=getattr(module, "loss", loss if labels.is_binary else softmax_loss),
        hits=hits if labels.is_binary else softmax_hits,
        build=partial(module.build, chosen),
        optimizer=module.optimizer,
        adapt=getattr(module, "adapt", None),
        exported=exported,
    )
    if file is None:
        return architecture
    return dataclasses.replace(
        architecture,
        build=own.checked_build(file, architecture.build, architecture.features),
        loss=own.reporting(file, architecture.loss),
        optimizer=own.reporting(file, architecture.optimizer),
        adapt=architecture.adapt and own.reporting(file, architecture.adapt),
        exported=own.reporting(file, exported),
    )


def try_out(training: Training, labels: Labels, transform: Transform, file: CodeFile) -> None:
    """Build the model of a user's project, compute the loss of a few reviews, adapt and export it.

    Args:
      training: the settings.
      labels: classes that the model could have.
      transform: the settings of the features.
      file: the file of the model.

    Raises:
      ValueError: the model has no such hyperparameter, or does not allow its value.
      CodeError: the file has an error.
    """
    architecture = resolve(training, labels, file)
    model = architecture.plain_model(transform)
    loss, optimizer = architecture.loss, architecture.optimizer
    own.try_out(file, model, loss, optimizer, labels, transform, training)
    if architecture.adapt is not None:
        rows = ngram_rows(transform.ngram_buckets, labels)
        architecture.adapt(model, np.ones([labels.number, rows]))
    found: Any = architecture.exported(model)  # the file may return anything
    if not isinstance(found, Exported):
        kind = type(found).__name__
        raise CodeError(
            about(file, "exported", f"returns a {kind}, not a trainer_module.models.Exported")
        )
    own.check_exported(file, found.served, found.base, architecture.features, labels)


def hyperparameters(training: Training, file: CodeFile | None = None) -> Any:
    """Return `training.hyperparameters` as the Hyperparameters of `training.model`.

    Args:
      training: the settings.
      file: the file of the model in a user's project; None: a model of the package.

    Raises:
      ValueError: the model has no such hyperparameter, or does not allow its value.
      CodeError: the file has an error.
    """
    known = load(training.model, file).Hyperparameters
    try:
        return known.model_validate(training.hyperparameters)
    except ValidationError as error:
        problem = first_problem(error, known, "training.hyperparameters")
        raise ValueError(f"{problem} (training.model is {training.model})") from None


def load(name: str, file: CodeFile | None = None) -> ModuleType:
    """Return the module of a model.

    Args:
      name: a value of `training.model`.
      file: the file of the model in a user's project; None: a model of the package.

    Raises:
      CodeError: the file has an error.
    """
    if file is not None:
        return own.load_own(file)
    return importlib.import_module(f"{__name__}.{name}")


def loss(label: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
    """Return the loss of each Example, [batch]: the mean binary cross-entropy over its logits.

    Args:
      label: float32 [batch, 1].
      logits: float32 [batch, 1] or [batch, parts, 1].
    """
    flat = _parts(logits, 1)[:, :, 0]
    each = tf.broadcast_to(label, tf.shape(flat))
    return tf_keras.losses.binary_crossentropy(each, flat, from_logits=True)


def softmax_loss(label: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
    """Return the loss of each Example, [batch]: the mean cross-entropy of the softmax over parts.

    Args:
      label: float32 [batch, 1].
      logits: float32 [batch, classes] or [batch, parts, classes].
    """
    parts = _parts(logits, logits.shape[-1])
    each = tf.broadcast_to(tf.cast(label, tf.int32), tf.shape(parts)[:2])
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(each, parts)
    return tf.reduce_mean(losses, axis=1)


def hits(label: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
    """Return the fraction of an Example's parts that predict its label; see `loss`."""
    return tf_keras.metrics.binary_accuracy(label, _parts(logits, 1)[:, :, 0], threshold=0.0)


def softmax_hits(label: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
    """Return the fraction of an Example's parts that predict its label; see `softmax_loss`."""
    predicted = tf.argmax(_parts(logits, logits.shape[-1]), axis=2)
    return tf.reduce_mean(tf.cast(predicted == tf.cast(label, tf.int64), tf.float32), axis=1)


def _parts(logits: tf.Tensor, number: int) -> tf.Tensor:
    """Return logits as [batch, parts, logits]; a model without parts is one part."""
    return tf.reshape(logits, [tf.shape(logits)[0], -1, number])


def weighted_by_class(loss: Loss, counts: np.ndarray, labels: Labels) -> Loss:
    """Return `loss` multiplied by the weight of the class of each Example.

    The weights are computed from the whole train split, over which their mean is 1. So the loss is
    still a mean over Examples, however these are divided into batches, replicas and processes.

    Args:
      loss: the loss of each Example.
      counts: the Examples of each class in the train split, float64 [classes].
      labels: the classes.

    Raises:
      ValueError: a class has no Examples.
    """
    if not counts.all():
        missing = labels.names[int(counts.argmin())]
        raise ValueError(
            "training.class_weights: balanced, but the train split has no Example of the class "
            f"{missing}; add some, or set none"
        )
    weights = tf.constant(counts.sum() / (labels.number * counts), tf.float32)

    def weighted(label: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
        return loss(label, logits) * tf.gather(weights, tf.cast(label[:, 0], tf.int32))

    return weighted


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
