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

from components.properties import BASELINE_PROPERTY
from components.pusher import (
    DAMAGED,
    ROLLED_BACK,
    SERVED,
    Destination,
    PushedModel,
    ServingFolder,
    make_destination,
)
from components.saved_models import check_files, copy_model
from core.errors import InputError, cause
from serving.identity import identity

MODEL_KEY = "model"
CANDIDATE_KEY = "candidate"
_VERSION_PROPERTY = artifact_utils.ARTIFACT_TFX_VERSION_CUSTOM_PROPERTY_KEY
_PROBLEM_PROPERTY = "problem"
"""The property of a Model with the reason for which the baseline is unknown."""
_NO_MODEL = "NO_MODEL"
"""The file in an artifact in place of a model, if there is no baseline."""


def served_model(destination: Destination, candidate: types.Artifact | None) -> PushedModel | None:
    """Return the model that is served and is not the candidate; None if there is none.

    In an unchanged second run the candidate is the served version itself. Compared with itself it
    would pass any threshold. Then it is compared with the newest other version, unless that was
    rolled back.

    A newer version that is damaged is returned, so that its copy fails: the servers that loaded it
    before it was damaged still answer with it.
    """
    own = identity(path_utils.serving_model_path(candidate.uri)) if candidate else None
    models = destination.pushed_models()
    if models and models[0].state == DAMAGED:
        return models[0]
    models.sort(key=lambda model: model.state != SERVED)
    others = (ROLLED_BACK, DAMAGED)
    return next((m for m in models if m.content != own and m.state not in others), None)


def _copy(served: str, artifact: types.Artifact) -> None:
    """Copy a served model to an artifact; raise InputError if the model is damaged."""
    try:
        check_files(served)
    except InputError as error:
        raise InputError(
            f"{served} is damaged, so no model can be compared with it ({error}); delete this "
            "folder to compare with the version before it"
        ) from None
    copy_model(served, path_utils.serving_model_dir(artifact.uri))


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
      candidate: the model that is compared with the baseline.
    """
    place = make_destination(destination)
    served = served_model(place, candidate)
    if served is None:
        logging.info("No other model is served: the evaluation has no baseline")
        write_no_model(model)
        return
    folder = place.folder(served.name)
    logging.info("Baseline: %s", folder)
    _copy(folder, model)
    model.set_string_custom_property(BASELINE_PROPERTY, f"version {served.name}")


class ServedBaseline(ResolverStrategy):
    """The model that the folder `serving` serves, and never the candidate.

    The strategy copies the model to an artifact in the folder `copies`. An unchanged second run
    gets the same artifact, so the Evaluator is a cache hit.
    """

    def __init__(self, serving: str, copies: str):
        self._serving = serving
        self._copies = copies

    def resolve_artifacts(
        self, store: MetadataStore, input_dict: dict[str, list[types.Artifact]]
    ) -> dict[str, list[types.Artifact]]:
        try:
            found = self._served(input_dict)
        except Exception as error:
            # TFX only logs the exception of a strategy, and evaluates without a baseline.
            logging.exception("The baseline is unknown")
            problem = f"paths.serving: the baseline in {self._serving} is unknown: {cause(error)}"
            found = _new_model(_PROBLEM_PROPERTY, problem)
        # TFX requires every key of the input in the result.
        return {**{key: [] for key in input_dict}, MODEL_KEY: [found] if found else []}

    def _served(self, input_dict: dict[str, list[types.Artifact]]) -> types.Artifact | None:
        candidate = next(iter(input_dict.get(CANDIDATE_KEY, [])), None)
        destination = ServingFolder(self._serving)
        served = served_model(destination, candidate)
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
        _copy(destination.folder(served.name), model)
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
      InputError: there is such a model, but it is unknown.
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
