"""The Resolver strategy that selects the model in production, which is the last pushed one."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ml_metadata import MetadataStore
from ml_metadata.proto import metadata_store_pb2 as mlmd
from tfx import types
from tfx.components.evaluator import constants
from tfx.dsl.components.common.resolver import ResolverStrategy

from components.properties import BLESSED_PROPERTY, CAUSE_PROPERTY, PUSHED_DESTINATION
from serving.versions import is_complete

MODEL_KEY = "model"
BLESSING_KEY = "model_blessing"
CANDIDATE_KEY = "candidate"
_PUSHED = "pushed"


class LastPushedModel(ResolverStrategy):
    """The blessed model that was pushed last, and its blessing.

    The ids of the models do not show their order: after a change of the settings and back, an older
    model is blessed and pushed again. If there is no pushed model, as with
    `push.destination: none`, the strategy selects the model that was blessed last, unless the
    serving check refused it.

    The strategy never selects the candidate. In an unchanged second run the candidate is the model
    that the first run pushed. Compared with itself it would pass any threshold, and the Evaluator
    would have a new input and therefore no cache hit.
    """

    def resolve_artifacts(
        self, store: MetadataStore, input_dict: dict[str, list[types.Artifact]]
    ) -> dict[str, list[types.Artifact]] | None:
        candidates = input_dict.get(CANDIDATE_KEY, [])
        own = {artifact.id for artifact in candidates}
        blessings = _blessings(input_dict[BLESSING_KEY])
        models = {
            model.id: model
            for model in input_dict[MODEL_KEY]
            if model.id in blessings and model.id not in own
        }
        outputs = _outputs(store, models)
        chosen = _last_pushed(outputs) or _last_blessed(
            blessings, models.keys() - _refused(outputs)
        )
        return {
            MODEL_KEY: [models[chosen]] if chosen else [],
            BLESSING_KEY: [blessings[chosen]] if chosen else [],
            **({CANDIDATE_KEY: candidates} if CANDIDATE_KEY in input_dict else {}),
        }


def _blessings(artifacts: Collection[types.Artifact]) -> dict[int, types.Artifact]:
    """Return id of a model -> its last positive blessing."""
    return {
        artifact.get_int_custom_property(constants.ARTIFACT_PROPERTY_CURRENT_MODEL_ID_KEY): artifact
        for artifact in sorted(artifacts, key=lambda artifact: artifact.id)
        if artifact.get_int_custom_property(constants.ARTIFACT_PROPERTY_BLESSED_KEY) == 1
    }


def _last_blessed(blessings: Mapping[int, types.Artifact], models: Collection[int]) -> int | None:
    return max(models, key=lambda model: blessings[model].id, default=None)


def _outputs(store: MetadataStore, models: Collection[int]) -> list[tuple[int, mlmd.Artifact]]:
    """Return (id of a model, artifact) for the outputs of executions with the model as an input.

    The newest artifact is the last one.
    """
    if not models:
        return []
    model_of = {
        event.execution_id: event.artifact_id
        for event in store.get_events_by_artifact_ids(list(models))
        if event.type == mlmd.Event.INPUT
    }
    # A cached execution has the output artifact of the execution that pushed the model.
    model_of_output = {
        event.artifact_id: model_of[event.execution_id]
        for event in store.get_events_by_execution_ids(list(model_of))
        if event.type == mlmd.Event.OUTPUT
    }
    artifacts = store.get_artifacts_by_id(list(model_of_output))
    ordered = sorted(artifacts, key=lambda artifact: artifact.id)
    return [(model_of_output[artifact.id], artifact) for artifact in ordered]


def _last_pushed(outputs: Sequence[tuple[int, mlmd.Artifact]]) -> int | None:
    """Return the id of the model whose push is the newest and still in its serving folder."""
    for model, output in reversed(outputs):
        if output.custom_properties[_PUSHED].int_value and is_complete(
            output.custom_properties[PUSHED_DESTINATION].string_value
        ):
            return model
    return None


def _refused(outputs: Sequence[tuple[int, mlmd.Artifact]]) -> set[int]:
    """Return the ids of the models that failed their last serving check."""
    passed = {
        model: output.custom_properties[BLESSED_PROPERTY].int_value
        for model, output in outputs
        # The blessing of an Evaluator has no cause.
        if CAUSE_PROPERTY in output.custom_properties
    }
    return {model for model, value in passed.items() if not value}
