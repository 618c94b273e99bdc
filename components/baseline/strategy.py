"""Resolver strategy: the latest blessed model other than the candidate itself."""

from __future__ import annotations

from tfx import types
from tfx.dsl.input_resolution.strategies.latest_blessed_model_strategy import (
    LatestBlessedModelStrategy,
)

CANDIDATE_KEY = "candidate"


class LatestBlessedBaseline(LatestBlessedModelStrategy):
    """The model in production, as seen by a candidate.

    On an unchanged second run the candidate is the model that the first run blessed. Compared
    with itself it would pass any threshold, and its Evaluator would have a new input and run
    again. So the candidate is left out of the choice.
    """

    def resolve_artifacts(
        self, store: object, input_dict: dict[str, list[types.Artifact]]
    ) -> dict[str, list[types.Artifact]] | None:
        candidates = input_dict[CANDIDATE_KEY]
        own = {artifact.id for artifact in candidates}
        others = {
            key: [artifact for artifact in artifacts if artifact.id not in own]
            for key, artifacts in input_dict.items()
            if key != CANDIDATE_KEY
        }
        resolved = super().resolve_artifacts(store, others)
        return None if resolved is None else {**resolved, CANDIDATE_KEY: candidates}
