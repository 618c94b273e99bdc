"""The weights of a model: copies to and from a strategy, and the warm start from an exported model.

The values pass through this process and not through files, because parameter servers on other
machines have no access to its temporary folders.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

import tensorflow as tf
import tf_keras
from absl import logging

from core.errors import InputError
from examples.held_out import ORIGIN_FILE, HeldOut, held_out, read_origin
from preprocessing import features
from preprocessing.labels import Labels, model_labels
from preprocessing.reading.listing import joined, listed
from trainer_module import models
from trainer_module.loop.finite import not_finite
from trainer_module.settings import TrainingJob


def spread(plain: tf_keras.Model, model: tf_keras.Model) -> None:
    """Copy the weights of `plain`, a model outside any strategy, to the same model under one.

    Args:
      plain: the source, whose variables are not sharded.
      model: the target. Under parameter servers a variable may consist of several shards of rows.
    """
    for whole, parts in _parts(plain, model):
        value = whole.read_value()
        values = [value] if len(parts) == 1 else tf.split(value, list(map(_rows, parts)))
        for part, rows in zip(parts, values, strict=True):
            part.assign(rows)


def gather(model: tf_keras.Model, plain: tf_keras.Model) -> None:
    """Copy the weights of `model` to `plain`.

    Reading a variable can be a collective operation, so every synchronous process calls this.

    Args:
      model: the source, see `spread`.
      plain: the target, see `spread`.

    Raises:
      tensorflow.errors.OpError: another process of the cluster is gone.
    """
    for whole, parts in _parts(plain, model):
        values = [part.read_value() for part in parts]
        whole.assign(values[0] if len(values) == 1 else tf.concat(values, axis=0))


def origin(job: TrainingJob, feature_names: tuple[str, ...]) -> dict[str, Any]:
    """Return the properties that two models must share to have interchangeable weights.

    Args:
      job: the training of a model.
      feature_names: the features that the model reads.

    Returns:
      JSON values; `hyperparameters` has all of them, with the defaults. `vocabulary` is a SHA-256,
      or None for a model without words.

    Raises:
      ValueError: the model has no such hyperparameter, or does not allow its value.
      CodeError: the file of a model in a user's project has an error.
      tensorflow.errors.OpError: the vocabulary cannot be read.
    """
    settings, vocabulary = job.transform.model_dump(), None
    hyperparameters = models.hyperparameters(job.training, job.model_file)
    if features.TOKENS in feature_names:
        assets = os.path.join(job.transform_graph, "transform_fn", "assets")
        with tf.io.gfile.GFile(os.path.join(assets, features.VOCABULARY), "rb") as stream:
            vocabulary = hashlib.sha256(stream.read()).hexdigest()
    return {
        "model": job.training.model,
        "hyperparameters": hyperparameters.model_dump(mode="json"),
        "transform": {
            key: settings[key] for name in feature_names for key in features.SETTINGS[name]
        },
        "vocabulary": vocabulary,
    }


def write_origin(job: TrainingJob, feature_names: tuple[str, ...]) -> None:
    """Write `origin` and how the test split is held out to ORIGIN_FILE in a SavedModel.

    Args:
      job: the training, which has exported its model.
      feature_names: the features that the model reads.

    Raises:
      ValueError, CodeError: see `origin`.
      tensorflow.errors.OpError: the vocabulary cannot be read, or the file cannot be written.
    """
    file = os.path.join(job.serving_model_dir, ORIGIN_FILE)
    tf.io.gfile.makedirs(os.path.dirname(file))
    with tf.io.gfile.GFile(file, "w") as stream:
        written = origin(job, feature_names) | _held_out(job).to_json()
        stream.write(json.dumps(written, indent=1))


def check_base_classes(job: TrainingJob, labels: Labels) -> None:
    """Check that the base model of a warm start has the classes of the training.

    Args:
      job: the training; without a base model, or with spans, other classes are no error.
      labels: the classes of the train split.

    Raises:
      InputError: the base model has other classes or another order of them, or the file of its
        classes is damaged.
      OSError: the file cannot be read.
    """
    if job.base_model is None or job.has_spans:
        return
    if problem := other_classes(job, labels):
        raise InputError(
            f"training.warm_start: {problem}. Set training.warm_start=false, or data.labels to the "
            "classes of the model"
        )


def other_classes(job: TrainingJob, labels: Labels) -> str:
    """Return how the classes of the base model of a warm start differ, as a clause.

    Args:
      job: the training, which has a base model.
      labels: the classes of the train split.

    Returns:
      Empty if the base model has the same classes in the same order.

    Raises:
      InputError: the file of the classes of the base model is damaged.
      OSError: the file cannot be read.
    """
    assert job.base_model is not None
    names = model_labels(job.base_model).names
    if names == labels.names:
        return ""
    ours, theirs = set(labels.names), set(names)
    differences = [
        f"only the {place} has {listed([name for name in found if name not in others])}"
        for place, found, others in (
            ("model", names, ours),
            ("train split", labels.names, theirs),
        )
        if not set(found) <= others
    ]
    problem = "; ".join(differences) or f"the order of the model is {listed(names)}"
    return f"the classes of {job.base_model} differ from those of the train split ({problem})"


def warm_start(
    job: TrainingJob, feature_names: tuple[str, ...], plain: tf_keras.Model, model: tf_keras.Model
) -> str:
    """Set the weights of two copies of a model to those of `job.base_model`.

    Args:
      job: the training.
      feature_names: the features that the model reads.
      plain: the copy outside any strategy, see `spread`.
      model: the copy under the strategy, see `spread`.

    Returns:
      Empty if the weights of the base model fit, also in their shapes, are finite, and were not
      trained on the test split. Otherwise the reason why no weight is changed, as a clause.

    Raises:
      ValueError, CodeError: see `origin`.
      tensorflow.errors.OpError: the vocabulary or the base model cannot be read.
    """
    assert job.base_model is not None
    theirs = read_origin(job.base_model)
    reason = _held_out(job).may_be_known_to(held_out(theirs))
    if reason:
        return f"{job.base_model} {reason}, and may have been trained on the test split"
    theirs = _completed(theirs, job)
    ours = origin(job, feature_names)
    if different := _differences(theirs, ours):
        verb = "differs" if len(different) == 1 else "differ"
        return f"{joined(different)} {verb} between this training and {job.base_model}"
    base = tf.saved_model.load(job.base_model)
    # The code of a model may have changed since, especially that of a user's project.
    before, now = (
        [tuple(each.shape) for each in of] for of in (base.model_variables, plain.variables)
    )
    if before != now:
        return f"the weights of {job.base_model} have the shapes {before}, now {now}"
    name = not_finite(base.model_variables)
    if name is not None:
        return f"the weights {name} of {job.base_model} are not finite"
    for variable, value in zip(plain.variables, base.model_variables, strict=True):
        variable.assign(value)
    spread(plain, model)
    logging.info("Warm start: weights of %s", job.base_model)
    return ""


def _held_out(job: TrainingJob) -> HeldOut:
    return HeldOut(job.unseen_span, job.splits, job.split_fractions)


def _completed(theirs: dict[str, Any], job: TrainingJob) -> dict[str, Any]:
    """Return the origin of a base model with all hyperparameters.

    Older models have only those that were set.
    """
    if theirs.get("model") != job.training.model:
        return theirs
    as_set = job.training.model_copy(update={"hyperparameters": theirs["hyperparameters"]})
    try:
        complete = models.hyperparameters(as_set, job.model_file).model_dump(mode="json")
    except ValueError:  # the model has other hyperparameters now
        return theirs
    return theirs | {"hyperparameters": complete}


def _differences(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> list[str]:
    """Return each property in which two origins differ, such as `model (a, now b)`."""
    if theirs.get("model") != ours["model"]:
        # The other properties of another model mean something else.
        return [f"model ({theirs.get('model')}, now {ours['model']})"]
    found = []
    for key, now in ours.items():
        before = theirs.get(key)
        if not isinstance(now, dict) or not isinstance(before, dict):
            if before != now:
                found.append(f"{key} ({before}, now {now})")
            continue
        for name in sorted({*before, *now}):
            if before.get(name) != now.get(name):
                found.append(f"{key}.{name} ({before.get(name)}, now {now.get(name)})")
    return found


def _parts(
    plain: tf_keras.Model, model: tf_keras.Model
) -> Iterator[tuple[tf.Variable, list[tf.Variable]]]:
    """Yield each variable of `plain` with its variables in `model`: one, or consecutive shards."""
    rest = iter(model.variables)
    for whole in plain.variables:
        parts = [next(rest)]
        while sum(map(_rows, parts)) < _rows(whole):
            parts.append(next(rest))
        yield whole, parts


def _rows(variable: tf.Variable) -> int:
    return variable.shape[0] if variable.shape.rank else 1
