"""The baseline of a candidate: the model that the destination of the push serves.

TFX's local engine selects it by the Resolver strategy `ServedBaseline`, which reuses the artifact
of an earlier run. The component `PushedBaseline` is for orchestrators without our strategies.

`@component` reads the annotations, which `from __future__ import annotations` would make strings.
"""

import os
from collections.abc import Mapping

from absl import logging
from ml_metadata import MetadataStore
from ml_metadata.proto import metadata_store_pb2 as mlmd
from tfx import types
from tfx.dsl.component.experimental.annotations import InputArtifact, OutputArtifact, Parameter
from tfx.dsl.component.experimental.decorators import component
from tfx.dsl.components.common.resolver import ResolverStrategy
from tfx.dsl.io import fileio
from tfx.types import artifact_utils, standard_artifacts
from tfx.utils import path_utils
from tfx.version import __version__

from components.destination import Destination, PushedModel, make_destination
from components.properties import BASELINE_PROPERTY
from components.saved_models import check_files, copy_model
from core.errors import InputError
from serving.identity import identity

MODEL_KEY = "model"
CANDIDATE_KEY = "candidate"
_VERSION_PROPERTY = artifact_utils.ARTIFACT_TFX_VERSION_CUSTOM_PROPERTY_KEY
_PROBLEM_PROPERTY = "problem"
"""The property of a Model with the reason for which the baseline is unknown."""
_NO_MODEL = "NO_MODEL"
"""The file in an artifact in place of a model, if there is no baseline."""


def _served_model(destination: Destination, candidate: types.Artifact | None) -> PushedModel | None:
    """Return the baseline of a Model; None if there is none, see `Destination.baseline`."""
    content = identity(path_utils.serving_model_path(candidate.uri)) if candidate else None
    return destination.baseline(content)


def _copy(destination: Destination, served: PushedModel, artifact: types.Artifact) -> None:
    """Copy a served model to an artifact.

    Raises:
      InputError: the served model is damaged.
      OSError, tensorflow.errors.OpError: a file cannot be read or written.
    """
    folder = destination.folder(served.name)
    try:
        check_files(folder)
    except InputError as error:
        raise InputError(destination.damaged_baseline(folder, error)) from None
    copy_model(folder, path_utils.serving_model_dir(artifact.uri))


@component
def PushedBaseline(
    destination: Parameter[str],
    model: OutputArtifact[standard_artifacts.Model],
    candidate: InputArtifact[standard_artifacts.Model] = None,  # type: ignore[assignment]
) -> None:
    """The model that a destination serves, and that is not the candidate itself -> `model`.

    It must not be cached, because its output depends on the pushed models.

    Args:
      destination: the JSON of `make_destination`.
      model: a copy of the served model, or a record that there is none.
      candidate: the model that is compared with the baseline; None for a warm start.

    Raises:
      InputError: the candidate is incomplete, the served model is damaged, or a service refuses a
        setting.
      OSError, tensorflow.errors.OpError, RuntimeError: the destination cannot be read.
    """
    served_from = make_destination(destination)
    served = _served_model(served_from, candidate)
    if served is None:
        logging.info("No other model is served: the evaluation has no baseline")
        write_no_model(model)
        return
    logging.info("Baseline: version %s in %s", served.name, served_from.location)
    _copy(served_from, served, model)
    model.set_string_custom_property(BASELINE_PROPERTY, f"version {served.name}")


class ServedBaseline(ResolverStrategy):
    """The model that a destination serves, and never the candidate.

    The strategy copies the model to an artifact in the folder `copies`. An unchanged second run
    gets the same artifact, so the Evaluator is a cache hit.

    Args:
      destination: the JSON of `make_destination`.
      copies: the folder of the copies, one subfolder for each model.
    """

    def __init__(self, destination: str, copies: str):
        self._destination = make_destination(destination)
        self._copies = copies

    def resolve_artifacts(
        self, store: MetadataStore, input_dict: dict[str, list[types.Artifact]]
    ) -> dict[str, list[types.Artifact]]:
        """Return MODEL_KEY -> the baseline, and nothing for the other keys of the input.

        Args:
          store: ML Metadata, which is not read.
          input_dict: MODEL_KEY -> the Models of earlier runs, and CANDIDATE_KEY -> the candidate
            unless this is for a warm start.

        Returns:
          No artifact for MODEL_KEY if there is no baseline. If the baseline is unknown, a Model for
          which `existing_model` raises an InputError: TFX ignores an exception of a strategy.
        """
        try:
            found = self._served(input_dict)
        except Exception as error:
            # TFX only logs the exception of a strategy, and evaluates without a baseline.
            logging.exception("The baseline is unknown")
            found = _new_model(_PROBLEM_PROPERTY, self._destination.unknown_baseline(error))
        # TFX requires every key of the input in the result.
        return {**{key: [] for key in input_dict}, MODEL_KEY: [found] if found else []}

    def _served(self, input_dict: dict[str, list[types.Artifact]]) -> types.Artifact | None:
        candidate = next(iter(input_dict.get(CANDIDATE_KEY, [])), None)
        served = _served_model(self._destination, candidate)
        if served is None:
            return None
        # Somebody may have replaced the model without a change of its version.
        uri = os.path.join(self._copies, f"{served.name}-{served.content}")
        # The artifact of an earlier run.
        model = next((model for model in input_dict[MODEL_KEY] if model.uri == uri), None)
        if model is None:
            model = _new_model(BASELINE_PROPERTY, f"version {served.name}")
            model.uri = uri
        # Each run copies the model again, because somebody may have deleted a part of the copy.
        _copy(self._destination, served, model)
        return model


def _new_model(key: str, value: str) -> types.Artifact:
    """Return a Model with a custom property, which TFX adds to ML Metadata."""
    model = standard_artifacts.Model()
    model.mlmd_artifact.state = mlmd.Artifact.LIVE
    # TFX expects another layout in an artifact without its version.
    model.set_string_custom_property(_VERSION_PROPERTY, __version__)
    model.set_string_custom_property(key, value)
    return model


def write_no_model(model: types.Artifact) -> None:
    """Record in an artifact that there is no model.

    A step of Kubeflow Pipelines must write all of its outputs.

    Args:
      model: a Model, whose folder is created.

    Raises:
      OSError, tensorflow.errors.OpError: the folder cannot be written.
    """
    fileio.makedirs(model.uri)
    with fileio.open(os.path.join(model.uri, _NO_MODEL), "w") as file:
        file.write("no model is served\n")


def existing_model(
    input_dict: Mapping[str, list[types.Artifact]], key: str
) -> dict[str, list[types.Artifact]]:
    """Return `input_dict`, without the input `key` if there is no such model.

    TFX's own components require that a missing input is absent.

    Args:
      input_dict: the inputs of an executor, key -> artifacts.
      key: the key of a model of `PushedBaseline` or `ServedBaseline`.

    Raises:
      InputError: it is unknown whether there is such a model, or it is damaged.
      OSError, tensorflow.errors.OpError: its folder cannot be read.
    """
    inputs = dict(input_dict)
    if not inputs.get(key):
        return inputs
    [model] = inputs[key]
    if problem := model.get_string_custom_property(_PROBLEM_PROPERTY):
        raise InputError(problem)
    if fileio.exists(os.path.join(model.uri, _NO_MODEL)):
        del inputs[key]
    return inputs
