"""The served model: the newest version in the serving folder that is not the candidate."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2
from tfx import types
from tfx.dsl.io import fileio
from tfx.types import artifact_utils
from tfx.utils import path_utils

from components.saved_models import copy_model, identity
from core.errors import InputError
from core.files import without_magic
from serving.versions import MODEL_FILE, is_complete, versions

PROBLEM_PROPERTY = "problem"
"""The property of a Model with the reason for which the baseline is unknown."""
_NO_MODEL = "NO_MODEL"
"""The file in an artifact in place of a model, if there is no baseline."""


class Served(NamedTuple):
    """A served model.

    Attributes:
      name: its name in the result of a run.
      path: its folder.
    """

    name: str
    path: str

    def copy_to(self, artifact: types.Artifact) -> None:
        """Copy the model to an artifact.

        Raises:
          InputError: the model is damaged.
        """
        try:
            _read(self.path)
        except Exception as error:  # TensorFlow raises any error for a damaged file.
            reason = str(error).strip().partition("\n")[0]
            raise InputError(
                f"{self.path} is damaged, so no model can be compared with it ({reason}); delete "
                "this folder to compare with the version before it"
            ) from None
        copy_model(self.path, path_utils.serving_model_dir(artifact.uri))


def served_model(folder: str, candidate: types.Artifact | None) -> Served | None:
    """Return the newest complete version that is not the candidate; None if there is none.

    In an unchanged second run the candidate is the newest version itself. Compared with itself it
    would pass any threshold.

    Raises:
      InputError: the candidate was deleted.
      OSError: the folder cannot be read.
    """
    own = identity(_existing(candidate)) if candidate else None
    for path in versions(folder):
        if identity(path) != own:
            return Served(f"version {os.path.basename(path)}", path)
    return None


def _existing(candidate: types.Artifact) -> str:
    folder: str = path_utils.serving_model_path(candidate.uri)
    if not is_complete(folder):
        raise InputError(
            f"{candidate.uri}: the model was deleted, although ML Metadata lists it; run once with "
            "--set cache=false to train it again"
        )
    return folder


def write_no_model(model: types.Artifact) -> None:
    """Record in an artifact that there is no model.

    A step of Kubeflow Pipelines must write all of its outputs.
    """
    fileio.makedirs(model.uri)
    with fileio.open(os.path.join(model.uri, _NO_MODEL), "w") as file:
        file.write("no model is served\n")


def existing_model(
    input_dict: Mapping[str, list[types.Artifact]], key: str
) -> dict[str, list[types.Artifact]]:
    """Return `input_dict`, without the input `key` if there is no such model.

    TFX's own components require that a missing input is absent.

    Raises:
      InputError: there is such a model, but it is unknown or its files are gone.
    """
    inputs = dict(input_dict)
    if not inputs.get(key):
        return inputs
    model = artifact_utils.get_single_instance(inputs[key])
    problem = model.get_string_custom_property(PROBLEM_PROPERTY)
    if problem:
        raise InputError(problem)
    if fileio.exists(os.path.join(model.uri, _NO_MODEL)):
        del inputs[key]
    elif not is_complete(path_utils.serving_model_path(model.uri)):
        raise InputError(f"{key}: the model in {model.uri} is gone; restore this folder")
    return inputs


def _read(model: str) -> None:
    """Read graph and weights of a SavedModel without an operation of TensorFlow.

    A training in this process must configure TensorFlow before the first operation.
    """
    with fileio.open(os.path.join(model, MODEL_FILE), "rb") as file:
        if not saved_model_pb2.SavedModel.FromString(file.read()).meta_graphs:
            raise ValueError(f"{MODEL_FILE} contains no graph")
    weights = tf.train.load_checkpoint(os.path.join(without_magic(model), "variables", "variables"))
    for name in weights.get_variable_to_shape_map():
        weights.get_tensor(name)
