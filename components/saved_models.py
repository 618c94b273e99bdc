"""The files of SavedModels: verified copies, and checks that a server can load them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2
from tfx.dsl.io import fileio
from tfx.utils import io_utils, path_utils

from core.digests import DIGESTS, check_digests, sha256, to_text
from core.errors import InputError, cause, write_again
from preprocessing.labels import model_labels
from preprocessing.signatures import PREDICT_TEXT
from serving.predict_text import (
    SAMPLE,
    check_outputs,
    check_probabilities,
    make_predict_text,
)
from serving.versions import MODEL_FILE, missing_part

_UNREACHABLE = (
    tf.errors.DeadlineExceededError,
    tf.errors.PermissionDeniedError,
    tf.errors.ResourceExhaustedError,
    tf.errors.UnauthenticatedError,
    tf.errors.UnavailableError,
)
"""Errors of a remote file system, which do not mean that a model is damaged."""
_UNREADABLE = (OSError, *_UNREACHABLE)
"""Errors of any file system."""


def copy_model(
    source: str,
    target: str,
    further: Mapping[str, str] | None = None,
    texts: Mapping[str, str] | None = None,
) -> None:
    """Copy a SavedModel to the folder `target`, verify the copy, and write its DIGESTS.

    A server loads a folder as soon as it contains MODEL_FILE. Therefore this file is written under
    another name, and renamed when all other files are complete.

    Args:
      source: the folder of the SavedModel, or its URL.
      target: the folder of the copy, or its URL. Files in it are overwritten.
      further: path of a file in the copy, relative to it -> a file to copy from elsewhere.
      texts: path of a file in the copy, relative to it -> its content, also if the original has
        another one.

    Raises:
      InputError: the model is missing.
      OSError, tensorflow.errors.OpError: a file cannot be read or written, or the copy differs from
        the original.
    """
    source, target = source.rstrip("/"), target.rstrip("/")
    names = set(_files(source))
    if MODEL_FILE not in names:
        raise InputError(f"{source} is no complete model: {MODEL_FILE} is missing")
    digests = {
        name: _copy_file(os.path.join(source, name), os.path.join(target, name))
        for name in names - {MODEL_FILE, DIGESTS}.union(texts or ())
    }
    for name, file in (further or {}).items():
        digests[name] = _copy_file(file, os.path.join(target, name))
    for name, text in (texts or {}).items():
        fileio.makedirs(os.path.dirname(os.path.join(target, name)))
        io_utils.write_string_file(os.path.join(target, name), text)
        digests[name] = sha256(os.path.join(target, name))
    partial = f"{target}/{MODEL_FILE}.partial"
    digests[MODEL_FILE] = _copy_file(f"{source}/{MODEL_FILE}", partial)
    io_utils.write_string_file(os.path.join(target, DIGESTS), to_text(digests))
    fileio.rename(partial, f"{target}/{MODEL_FILE}", overwrite=True)


def copy_folder(source: str, target: str) -> None:
    """Copy all files of a folder, and verify the copy.

    TFX's own `copy_dir` raises no error if the source is missing.

    Args:
      source: the folder, or its URL.
      target: the folder of the copy, or its URL. Files in it are overwritten.

    Raises:
      InputError: there is no file in the folder `source`.
      OSError, tensorflow.errors.OpError: a file cannot be read or written, or the copy differs from
        the original.
    """
    names = list(_files(source.rstrip("/")))
    if not names:
        raise InputError(f"{source} is missing, or has no files")
    for name in names:
        _copy_file(os.path.join(source, name), os.path.join(target, name))


def add_missing(source: str, target: str) -> None:
    """Copy a file, and verify the copy, unless the target exists.

    Args:
      source: the file, or its URL.
      target: the file of the copy, or its URL.

    Raises:
      OSError, tensorflow.errors.OpError: a file cannot be read or written, or the copy differs from
        the original.
    """
    if not fileio.exists(target):
        _copy_file(source, target)


def trained_model(uri: str) -> str:
    """Return the folder of the SavedModel in the output of a Trainer, after a check of its files.

    Args:
      uri: the path or the URL of the artifact Model.

    Raises:
      InputError: the model is missing or damaged.
      OSError, tensorflow.errors.OpError: the files cannot be read now.
    """
    model: str = path_utils.serving_model_path(uri)
    try:
        check_files(model)
    except InputError as error:
        raise InputError(f"{model} is damaged ({error}); {write_again('it')}") from None
    return model


def check_files(model: str) -> None:
    """Check that the files of a SavedModel are those of its push, and that they can be read.

    The check executes no operation of TensorFlow, because a training in the same process must
    configure TensorFlow before the first operation.

    Args:
      model: the folder of the SavedModel, or its URL.

    Raises:
      InputError: a server cannot load the model. The message is the reason.
      OSError, tensorflow.errors.OpError: the files cannot be read now.
    """
    try:
        if missing := missing_part(model):
            raise InputError(missing)
        check_digests(model)
        with fileio.open(os.path.join(model, MODEL_FILE), "rb") as file:
            graphs = saved_model_pb2.SavedModel.FromString(file.read()).meta_graphs
        found = [graph.signature_def.get(PREDICT_TEXT) for graph in graphs]
        signature = next(filter(None, found), None)
        if signature is None:
            raise InputError(f"{MODEL_FILE} contains no graph with the signature {PREDICT_TEXT}")
        shapes = {
            name: tf.TensorShape(info.tensor_shape) for name, info in signature.outputs.items()
        }
        check_outputs(shapes, model_labels(model))
        weights = tf.train.load_checkpoint(os.path.join(model, "variables", "variables"))
        for name in weights.get_variable_to_shape_map():
            weights.get_tensor(name)
    except _UNREADABLE:
        raise
    except Exception as error:  # TensorFlow raises any error for a damaged file.
        raise InputError(cause(error)) from None


def check_loads(model: str) -> None:
    """Check that a SavedModel can be loaded and called.

    Args:
      model: the folder of the SavedModel, or its URL.

    Raises:
      InputError: the model cannot be loaded, or a call fails. The message is the reason.
      OSError, tensorflow.errors.OpError: the files cannot be read now.
    """
    check_files(model)
    try:
        answers = make_predict_text(tf.saved_model.load(model), model)([SAMPLE])
        check_probabilities(answers[model_labels(model).scores_name])
    except _UNREACHABLE:
        raise
    except Exception as error:  # A damaged file can raise anything, also an OSError.
        raise InputError(cause(error)) from None


def _files(folder: str) -> Iterator[str]:
    """Yield the paths of all files in a folder, relative to it; none if the folder is missing."""
    for directory, _, names in fileio.walk(folder):
        for name in names:
            yield os.path.relpath(os.path.join(directory, name), folder)


def _copy_file(source: str, target: str) -> str:
    """Copy a file, and verify the copy; return its SHA-256.

    Raises:
      OSError: the copy differs from the original.
    """
    fileio.makedirs(os.path.dirname(target))
    fileio.copy(source, target, overwrite=True)
    digest = sha256(source)
    if sha256(target) != digest:
        raise OSError(f"{target} differs from {source} after the copy")
    return digest
