"""The Resolver strategy that selects the served model for the local engine."""

from __future__ import annotations

import hashlib
import os

from absl import logging
from ml_metadata import MetadataStore
from ml_metadata.proto import metadata_store_pb2 as mlmd
from tfx import types
from tfx.components.evaluator import constants
from tfx.dsl.components.common.resolver import ResolverStrategy
from tfx.types import artifact_utils, standard_artifacts
from tfx.utils import path_utils
from tfx.version import __version__

from components.baseline.served import PROBLEM_PROPERTY, Served, served_model
from components.properties import BASELINE_PROPERTY, BLESSED_PROPERTY
from components.saved_models import identity
from core.errors import InputError, UserError
from serving.versions import is_complete

MODEL_KEY = "model"
BLESSING_KEY = "model_blessing"
CHECK_KEY = "infra_blessing"
CANDIDATE_KEY = "candidate"
_VERSION_PROPERTY = artifact_utils.ARTIFACT_TFX_VERSION_CUSTOM_PROPERTY_KEY


class ServedBaseline(ResolverStrategy):
    """The model that `serving` serves, and never the candidate.

    The strategy copies the model to an artifact in `copies`. An unchanged second run gets the same
    artifact, so the Evaluator is a cache hit.

    If no model is served and models are not pushed, the strategy selects the model that was blessed
    last and not refused by the serving check.
    """

    def __init__(self, serving: str, copies: str, pushes: bool):
        """Construct the strategy.

        Args:
          serving: the folder of all versions.
          copies: the folder for the copies of served models.
          pushes: whether the pipeline has a Pusher.
        """
        self._serving = serving
        self._copies = copies
        self._pushes = pushes

    def resolve_artifacts(
        self, store: MetadataStore, input_dict: dict[str, list[types.Artifact]]
    ) -> dict[str, list[types.Artifact]]:
        """See TFX's ResolverStrategy."""
        try:
            found = self._served(input_dict)
            if found is None and not self._pushes:
                found = self._last_blessed(input_dict)
        except Exception as error:
            # TFX only logs the exception of a strategy, and evaluates without a baseline.
            logging.exception("The baseline is unknown")
            problem = (
                str(error)
                if isinstance(error, UserError)
                else f"paths.serving: the model in {self._serving} cannot be copied to "
                f"{self._copies}: {error}"
            )
            found = _new_model(PROBLEM_PROPERTY, problem)
        # TFX requires every key of the input in the result.
        return {**{key: [] for key in input_dict}, MODEL_KEY: [found] if found else []}

    def _served(self, input_dict: dict[str, list[types.Artifact]]) -> types.Artifact | None:
        candidate = next(iter(input_dict.get(CANDIDATE_KEY, [])), None)
        served = served_model(self._serving, candidate)
        return None if served is None else self._copy(served, input_dict[MODEL_KEY])

    def _copy(self, served: Served, known: list[types.Artifact]) -> types.Artifact:
        """Return the artifact with a copy of a served model; reuse the one of an earlier run."""
        # Somebody may have replaced the model without a change of its version.
        digest = hashlib.sha256(identity(served.path)).hexdigest()[:12]
        uri = os.path.join(self._copies, f"{os.path.basename(served.path)}-{digest}")
        model = next((model for model in known if model.uri == uri), None)
        if model is None:
            model = _new_model(BASELINE_PROPERTY, served.name)
            model.uri = uri
        # Each run copies the model again, because somebody may have deleted a part of the copy.
        served.copy_to(model)
        return model

    def _last_blessed(self, input_dict: dict[str, list[types.Artifact]]) -> types.Artifact | None:
        """Return the model that was blessed last.

        Raises:
          InputError: its files are gone.
        """
        own = {artifact.id for artifact in input_dict.get(CANDIDATE_KEY, [])}
        models = {model.id: model for model in input_dict[MODEL_KEY] if model.id not in own}
        passed = dict(_blessings(input_dict[CHECK_KEY]))
        blessed = [
            models[number]
            for number, is_blessed in _blessings(input_dict[BLESSING_KEY])
            if is_blessed and number in models and passed.get(number, True)
        ]
        if not blessed:
            return None
        if not is_complete(path_utils.serving_model_path(blessed[-1].uri)):
            raise InputError(
                f"the model that was blessed last, {blessed[-1].uri}, is gone, so no model can be "
                f"compared with it; restore this folder, or copy a model to {self._serving}/1 to "
                "compare with that"
            )
        return blessed[-1]


def _new_model(key: str, value: str) -> types.Artifact:
    """Return a Model with a custom property, which TFX adds to ML Metadata."""
    model = standard_artifacts.Model()
    model.mlmd_artifact.state = mlmd.Artifact.LIVE
    # TFX expects another layout in an artifact without its version.
    model.set_string_custom_property(_VERSION_PROPERTY, __version__)
    model.set_string_custom_property(key, value)
    return model


def _blessings(artifacts: list[types.Artifact]) -> list[tuple[int, bool]]:
    """Return the id of a model and whether it is blessed, for each blessing, the newest last."""
    return [
        (
            artifact.get_int_custom_property(constants.ARTIFACT_PROPERTY_CURRENT_MODEL_ID_KEY),
            artifact.get_int_custom_property(BLESSED_PROPERTY) == 1,
        )
        for artifact in sorted(artifacts, key=lambda artifact: artifact.id)
    ]
