"""The baseline of a candidate: the model that the destination of the push serves.

TFX's local engine selects it with the Resolver strategy `ServedBaseline`, which reuses the artifact
of an earlier run. Orchestrators that do not run our strategies use the component `PushedBaseline`.

`@component` requires annotations that are types, so this module has no
`from __future__ import annotations`, which turns them into strings.
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

from components.destination import Destination, PushedModel, baseline_name, make_destination
from components.properties import BASELINE_PROPERTY
from components.saved_models import check_files, copy_model
from core.errors import InputError
from serving.identity import identity

MODEL_KEY = "model"
CANDIDATE_KEY = "candidate"
_VERSION_PROPERTY = artifact_utils.ARTIFACT_TFX_VERSION_CUSTOM_PROPERTY_KEY
_PROBLEM_PROPERTY = "problem"
"""The custom property of a Model with the reason why the baseline is unknown."""
_NO_MODEL = "NO_MODEL"
"""The file that an artifact contains instead of a model if there is no baseline."""


def _served_model(destination: Destination, candidate: types.Artifact | None) -> PushedModel | None:
    """Return the baseline of a candidate; None if there is none. See `Destination.baseline`."""
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
    """Copy the model that a destination serves to `model`, unless it is the candidate itself.

    The component must not be cached, because its output depends on the pushed models.

    Args:
      destination: the JSON of `make_destination`.
      model: the output: a copy of the served model, or the record that there is none.
      candidate: the model that is compared with the baseline; None for a warm start.

    Raises:
      InputError: the candidate is incomplete, the served model is damaged, or a service refuses a
        setting.
      OSError, tensorflow.errors.OpError, RuntimeError: the destination cannot be read, or the copy
        cannot be written.
    """
    served_from = make_destination(destination)
    served = _served_model(served_from, candidate)
    if served is None:
        logging.info("No other model is served: the evaluation has no baseline")
        write_no_model(model)
        return
    logging.info("Baseline: version %s in %s", served.name, served_from.location)
    _copy(served_from, served, model)
    model.set_string_custom_property(BASELINE_PROPERTY, baseline_name(served.name))


class ServedBaseline(ResolverStrategy):
    """A Resolver strategy for the model that a destination serves; it never selects the candidate.

    The strategy copies the model to an artifact in the folder `copies`. In an unchanged second run
    it selects the same artifact, so the Evaluator is a cache hit.

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
        """Return the baseline under MODEL_KEY, and no artifact under the other keys of the input.

        Args:
          store: ML Metadata; not read.
          input_dict: MODEL_KEY -> the Models of earlier runs; CANDIDATE_KEY -> the candidate. A
            warm start has no candidate.

        Returns:
          Key -> artifacts. MODEL_KEY has no artifact if there is no baseline. If the baseline is
          unknown, MODEL_KEY has a Model that `existing_model` rejects with an InputError, because
          TFX ignores the exceptions of a strategy.
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
        # A model may have been replaced under its version, so the folder depends on the content.
        uri = os.path.join(self._copies, f"{served.name}-{served.content}")
        # The artifact of an earlier run.
        model = next((model for model in input_dict[MODEL_KEY] if model.uri == uri), None)
        if model is None:
            model = _new_model(BASELINE_PROPERTY, baseline_name(served.name))
            model.uri = uri
        # Each run copies the model again, because files of the copy may have been deleted.
        _copy(self._destination, served, model)
        return model


def _new_model(key: str, value: str) -> types.Artifact:
    """Return a new Model with a custom property. TFX adds the Model to ML Metadata."""
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
    """Return the inputs of an executor, without the input `key` if it has no model.

    The executors of TFX require that a missing input is absent.

    Args:
      input_dict: the inputs of an executor, key -> artifacts.
      key: the input that is connected to a `PushedBaseline` or a `ServedBaseline`.

    Raises:
      InputError: the baseline is unknown or damaged.
      OSError, tensorflow.errors.OpError: the folder of the model cannot be read.
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
