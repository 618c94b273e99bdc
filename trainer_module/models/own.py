"""The model of a user's project: its module, and the checks of what it builds."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from types import ModuleType
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras

from core.code_file import CodeError, CodeFile, about, failed_line, guarded, line_of, load
from core.errors import UserError, cause
from core.settings import Section
from preprocessing import features
from preprocessing.labels import Labels
from preprocessing.settings import Transform
from trainer_module.inputs.batches import BatchSpec
from trainer_module.models import search_space
from trainer_module.models.layers import FusedAdam
from trainer_module.settings import Training

REQUIRED = ("Hyperparameters", "FEATURES", "LEARNING_RATE", "SEARCH_SPACE", "build", "optimizer")
"""The names that the file of a model defines; `trainer_module.models` describes them."""
_WORDS = ((features.FIRST_TOKEN, features.UNKNOWN_TOKEN), (features.UNKNOWN_TOKEN,))
"""The ids of the words, and of the n-grams, of the two reviews with which a model is tried."""
_MORE_PADDING = 3
_TOLERANCE = 1e-4
"""Difference of a logit with more padding, as a fraction of the largest logit."""
_OPTIMIZERS = (tf_keras.optimizers.Optimizer, tf_keras.optimizers.legacy.Optimizer)
_METHODS = ("call", "train_step", "test_step", "compute_loss")
"""Methods of a model in whose place a training uses the layers and the function `loss`."""
_OF_ONE_OPERATION = (
    FusedAdam,
    tf_keras.optimizers.legacy.SGD,
    tf_keras.optimizers.legacy.Adagrad,
    tf_keras.optimizers.legacy.Adadelta,
    tf_keras.optimizers.legacy.Ftrl,
)
"""Optimizers that update a variable and their state of it by a single operation, see `FusedAdam`.
The other ones of Keras overwrite what another worker of `parameter_server` writes meanwhile."""


def load_own(file: CodeFile) -> ModuleType:
    """Return the module of a file.

    Args:
      file: the file of a model.

    Raises:
      CodeError: the file has an error, or lacks a name of REQUIRED, or a name has a wrong value.
    """
    module = load(file, REQUIRED)
    known = module.Hyperparameters
    if not (isinstance(known, type) and issubclass(known, Section)):
        raise CodeError(about(file, "Hyperparameters", "is not a class that extends Section"))
    if isinstance(module.FEATURES, str) or not isinstance(module.FEATURES, Iterable):
        raise CodeError(about(file, "FEATURES", "is no tuple, such as (features.TOKENS,)"))
    for name in module.FEATURES:
        if name not in features.SETTINGS:
            names = " and ".join(features.SETTINGS)
            raise CodeError(about(file, "FEATURES", f"contains {name!r}; the features are {names}"))
    rate = module.LEARNING_RATE
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 < rate < math.inf:
        raise CodeError(about(file, "LEARNING_RATE", f"is {rate!r}, not a number above 0"))
    problem = search_space.find_problem(module.SEARCH_SPACE, known)
    if problem:
        raise CodeError(about(file, "SEARCH_SPACE", problem))
    for name in ("build", "optimizer"):
        if not callable(getattr(module, name)):
            raise CodeError(about(file, name, "is not a function"))
    return module


def reporting(file: CodeFile, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of a file whose exceptions name the file and the line.

    Args:
      file: the file.
      function: the function.
    """

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return guarded(file, function, *args, **kwargs)

    return call


def checked_build(
    file: CodeFile, build: Callable[..., tf_keras.Model], names: Iterable[str]
) -> Callable[..., tf_keras.Model]:
    """Return `build` with a check of the inputs and the output of the model.

    Args:
      file: the file of the model.
      build: the function of the file, with its hyperparameters.
      names: the features that the model reads.

    Raises:
      CodeError: by the returned function: the file raised an exception, or the model has no
        inputs, other ones or another output.
    """

    def call(transform: Any, labels: Labels, *, static_shapes: bool = False) -> tf_keras.Model:
        model = guarded(file, build, transform, labels, static_shapes=static_shapes)
        if not isinstance(model, tf_keras.Model):
            kind = f"{type(model).__module__}.{type(model).__name__}"
            raise CodeError(
                about(
                    file,
                    "build",
                    f"returns a {kind}, not a tf_keras.Model",
                )
            )
        inputs = _inputs(file, model, "build")
        found = sorted(inputs) if isinstance(inputs, Mapping) else None
        if found != sorted(names):
            raise CodeError(
                about(
                    file,
                    "build",
                    f"returns a model with the inputs {found or 'without names'}; tf_keras.Model "
                    f"requires a mapping with the FEATURES {sorted(names)}",
                )
            )
        _check_output(file, model.output, labels)
        return model

    return call


def try_out(
    file: CodeFile,
    model: tf_keras.Model,
    loss: Callable[[tf.Tensor, tf.Tensor], tf.Tensor],
    optimizer: Callable[[Any], Any],
    labels: Labels,
    transform: Transform,
    training: Training,
) -> None:
    """Compute the logits and the loss of two short reviews, and of none, with a new model.

    Args:
      file: the file of the model.
      model: the model.
      loss: the loss of each Example.
      optimizer: (learning rate or schedule) -> the optimizer.
      labels: the classes of the model.
      transform: the settings of the features.
      training: the settings.

    Raises:
      CodeError: the model or the loss fails or has another form, the logits of a review depend on
        its padding, the model has a loss that no layer has or a method that no training calls, or
        the strategy does not support the optimizer, which is one of tf_keras, or a constraint.
    """
    made = optimizer(1e-3)
    _check_optimizer(file, made, training)
    _check_learning_rate(file, optimizer)
    # A training consists of the layers between the inputs and the output.
    if len(model.losses) > len(tf_keras.Model(model.input, model.output).losses):
        raise CodeError(
            about(
                file,
                "build",
                "returns a model with an add_loss of its own, which the training would ignore; "
                "call add_loss in the `call` of a layer",
            )
        )
    _check_methods(file, model)
    _check_constraints(file, model, training)
    narrow = _in_graph(file, model, _reviews(model, 0), training=False)
    _check_output(file, narrow, labels)
    wide = _in_graph(file, model, _reviews(model, _MORE_PADDING), training=False)
    if np.abs(narrow - wide).max() > _TOLERANCE * np.abs(narrow).max():
        raise CodeError(
            about(
                file,
                "build",
                "returns a model whose logits depend on the padding of a review; leave the ids "
                "features.PADDING_TOKEN out of every sum and maximum",
            )
        )
    trained = _in_graph(file, model, _reviews(model, 0), training=True)
    losses = _in_graph(file, loss, tf.constant([[0.0], [1.0]]), trained)
    shape = tuple(losses.shape)
    if shape != (2,):
        raise CodeError(about(file, "loss", f"returns the shape {shape} for 2 Examples, not (2,)"))
    if losses.dtype != tf.float32:
        raise CodeError(about(file, "loss", f"returns {losses.dtype.name}, not float32"))
    if not np.isfinite(losses).all():
        found = ", ".join(map(str, losses.numpy()))
        raise CodeError(
            about(file, "loss", f"returns {found} for 2 Examples of a new model; it must be finite")
        )
    _try_steps(file, model, loss, made, transform)


def check_exported(
    file: CodeFile, served: Any, base: Any, names: Iterable[str], labels: Labels
) -> None:
    """Check the models that `exported` of a file returns in an `Exported`.

    Args:
      file: the file.
      served: the model that the signatures compute.
      base: the model of a warm start.
      names: the features that the trained model reads. No others are computed for a prediction.
      labels: the classes.

    Raises:
      CodeError: one of them is no model, or the served model has no inputs, other ones or another
        output.
    """
    for name, model in (("served", served), ("base", base)):
        if not isinstance(model, tf_keras.Model):
            kind = f"{type(model).__module__}.{type(model).__name__}"
            problem = f"returns a {kind} as `{name}`, not a tf_keras.Model"
            raise CodeError(about(file, "exported", problem))
    inputs = _inputs(file, served, "exported")
    if not isinstance(inputs, Mapping) or not inputs.keys() <= set(names):
        found = sorted(inputs) if isinstance(inputs, Mapping) else "without names"
        raise CodeError(
            about(
                file,
                "exported",
                f"returns a served model with the inputs {found}; they must be a mapping with "
                f"names of the FEATURES {sorted(names)}",
            )
        )
    _check_output(file, served.output, labels, "exported")


def _inputs(file: CodeFile, model: tf_keras.Model, function: str) -> Any:
    """Return the symbolic inputs of a model that a function of a file has returned.

    Raises:
      CodeError: it has none.
    """
    # Without them, the attribute raises an AttributeError.
    if not hasattr(model, "input"):
        kind = type(model).__name__
        raise CodeError(
            about(
                file,
                function,
                f"returns a model of the class {kind} without inputs; return "
                "tf_keras.Model(INPUTS, LOGITS), whose INPUTS are a mapping",
            )
        )
    return model.input


def _check_methods(file: CodeFile, model: tf_keras.Model) -> None:
    """Check that the class of a model has no method that the training would ignore.

    Raises:
      CodeError: it has one.
    """
    kind = type(model)
    for name in _METHODS:
        defined = next(each for each in kind.__mro__ if name in vars(each))
        if defined.__module__.split(".")[0] != tf_keras.__name__:
            raise CodeError(
                about(
                    file,
                    "build",
                    f"returns a {kind.__name__} with a `{name}` of its own, which the training "
                    "would ignore; put its computation into a layer or the function `loss`",
                )
            )


def _check_optimizer(file: CodeFile, optimizer: Any, training: Training) -> None:
    """Check that both loops can train with an optimizer under the strategy of the settings.

    Raises:
      CodeError: they cannot.
    """
    kind = f"{type(optimizer).__module__}.{type(optimizer).__name__}"
    problem = ""
    if not isinstance(optimizer, _OPTIMIZERS):
        problem = f"returns a {kind}, not a tf_keras optimizer"
    elif getattr(optimizer, "use_ema", False):
        # Keras's `fit` replaces the weights at its end, after the last evaluation and checkpoint.
        problem = "returns an optimizer with use_ema, whose averages are never evaluated; unset it"
    elif training.strategy == "central_storage" and not isinstance(
        optimizer, tf_keras.optimizers.legacy.Optimizer
    ):
        problem = (
            f"returns a {kind}, which has no learning rate schedule under central_storage; return "
            "one of tf_keras.optimizers.legacy, or trainer_module.models.layers.adam"
        )
    elif (
        training.strategy == "parameter_server"
        and training.workers > 1
        and not isinstance(optimizer, _OF_ONE_OPERATION)
    ):
        problem = (
            f"returns a {kind}, whose updates {training.workers} workers of parameter_server would "
            "overwrite; return trainer_module.models.layers.adam, or SGD, Adagrad, Adadelta or "
            "Ftrl of tf_keras.optimizers.legacy"
        )
    if problem:
        raise CodeError(about(file, "optimizer", problem))


def _check_learning_rate(file: CodeFile, optimizer: Callable[[Any], Any]) -> None:
    """Check that the optimizer of a file has the learning rate of the training, a schedule.

    Raises:
      CodeError: it has another learning rate, or fails with a schedule.
    """
    schedule = tf_keras.optimizers.schedules.ExponentialDecay(1e-3, 1, 0.5)
    # The config of a number is a number, and that of a schedule a mapping.
    found = optimizer(schedule).get_config().get("learning_rate")
    # The numbers of current optimizers are those of NumPy.
    if isinstance(found, numbers.Real):
        raise CodeError(
            about(
                file,
                "optimizer",
                f"returns an optimizer with the learning rate {found:g} instead of the schedule "
                "that it is given; training.learning_rate and the Tuner would have no effect",
            )
        )


def _check_constraints(file: CodeFile, model: tf_keras.Model, training: Training) -> None:
    """Check that the workers of parameter servers do not overwrite updates by a constraint.

    An optimizer applies a constraint after the update, by an operation of its own that assigns all
    values.

    Raises:
      CodeError: a trained variable has a constraint, and there are several workers.
    """
    if training.strategy != "parameter_server" or training.workers == 1:
        return
    for variable in model.trainable_variables:
        if variable.constraint is not None:
            raise CodeError(
                about(
                    file,
                    "build",
                    f"returns a model with a constraint on {variable.name}, by which each of "
                    f"{training.workers} workers of parameter_server would overwrite the updates "
                    "of the others; use a regularizer in its place, or another training.strategy",
                )
            )


def _try_steps(
    file: CodeFile,
    model: tf_keras.Model,
    loss: Callable[[tf.Tensor, tf.Tensor], tf.Tensor],
    optimizer: Any,
    transform: Transform,
) -> None:
    """Compute an evaluation and the gradients of a training for two reviews, and for none.

    Raises:
      CodeError: one of them fails.
      UserError: code of the file raised it.
    """
    batching = BatchSpec(tuple(model.input), transform, batch_size=1)
    batches = batching.empty()
    if not batching.by_length:
        batches = batches.map(batching.parse)
    inputs, label = batches.get_single_element()
    # As in a training, the graph has no static number of reviews. TensorFlow would remove
    # operations of which it knows that they have no elements.
    specs = {name: model_input.type_spec for name, model_input in model.input.items()}

    @tf.function(input_signature=[specs, tf.TensorSpec([None, 1])], autograph=False)
    def steps(inputs: dict[str, Any], label: tf.Tensor) -> list[Any]:
        evaluated = loss(label, model(inputs, training=False))
        with tf.GradientTape() as tape:
            trained = loss(label, model(inputs, training=True))
        used.extend(tape.watched_variables())
        gradients = tape.gradient(trained, model.trainable_variables)
        for variable, gradient in zip(model.trainable_variables, gradients, strict=True):
            if isinstance(gradient, tf.IndexedSlices) and variable.constraint is not None:
                sparse.append(variable.name)
        return [evaluated, trained, *gradients]

    used: list[tf.Variable] = []
    sparse: list[str] = []
    # The averages of a batch normalization of no reviews are not numbers.
    weights = model.get_weights()
    guarded(file, steps, _reviews(model, 0), tf.constant([[0.0], [1.0]]))
    of_layers = {variable.ref() for variable in model.variables}
    for variable in used:
        if variable.ref() not in of_layers:
            raise CodeError(
                about(
                    file,
                    "build",
                    f"returns a model that computes with the variable {variable.name}, which no "
                    "layer has as an attribute; it would be neither trained nor exported",
                )
            )
    if sparse and isinstance(optimizer, tf_keras.optimizers.legacy.Optimizer):
        raise CodeError(
            about(
                file,
                "build",
                f"returns a model with a constraint on {sparse[0]}, of which a step has the "
                "gradient of some rows only; optimizers of tf_keras.optimizers.legacy, such as "
                "trainer_module.models.layers.adam, support none there; use a regularizer",
            )
        )
    try:
        steps(inputs, label)
    except UserError:
        raise
    except Exception as error:
        line = failed_line(file, error) or line_of(file, "build")
        raise CodeError(
            f"{file.path}, line {line}: the model fails for a batch of 0 reviews, which a replica "
            f"may have in the last step of an epoch ({cause(error)}); pass the ids through "
            "trainer_module.models.layers.Padding, which adds a review to an empty batch"
        ) from error
    model.set_weights(weights)


def _in_graph(file: CodeFile, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return the result of a function in a graph, as in a step of the training.

    Raises:
      CodeError: the function failed.
    """
    step = tf.function(lambda: function(*args, **kwargs), autograph=False)
    return guarded(file, step)


def _check_output(file: CodeFile, output: Any, labels: Labels, function: str = "build") -> None:
    """Check that the output of a model of a function is the logits, float32 [batch, logits].

    Raises:
      CodeError: it is not.
    """
    if not isinstance(getattr(output, "shape", None), tf.TensorShape):
        raise CodeError(about(file, function, "returns a model whose output is not one tensor"))
    shape = tuple(output.shape)
    if len(shape) != 2 or shape[1] != labels.logits or output.dtype != tf.float32:
        dimensions = ", ".join("batch" if size is None else str(size) for size in shape)
        raise CodeError(
            about(
                file,
                function,
                f"returns a model with the output {output.dtype.name} [{dimensions}]; for "
                f"{labels.number} classes it must be float32 [batch, {labels.logits}], as that of "
                "trainer_module.models.layers.logits",
            )
        )


def _reviews(model: tf_keras.Model, padding: int) -> dict[str, Any]:
    """Return two reviews as inputs of a model, whose rows have some columns of padding more."""
    width = max(map(len, _WORDS)) + padding
    ragged = tf.ragged.constant(_WORDS, tf.int64)
    inputs = {}
    for name, model_input in model.input.items():
        if isinstance(model_input.type_spec, tf.RaggedTensorSpec):
            inputs[name] = ragged
        else:
            inputs[name] = ragged.to_tensor(features.PADDING_TOKEN, shape=[len(_WORDS), width])
    return inputs
