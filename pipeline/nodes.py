"""The nodes of the pipeline, in their order. This module imports no TFX, which takes seconds."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from components.properties import REPORT_NODE as REPORT

if TYPE_CHECKING:
    from pipeline.config import PipelineConfig

BASELINE = "LatestBlessedModel"
WARM_START = "WarmStartModel"
TUNER = "Tuner"
TRAINER = "Trainer"
SERVING_CHECK = "ServingCheck"
PUSHER = "Pusher"

NODES: dict[str, Callable[[PipelineConfig], bool] | None] = {
    "ReviewExampleGen": None,
    "SchemaGen": None,
    WARM_START: lambda config: config.training.warm_start,
    "StatisticsGen": None,
    "ExampleValidator": None,
    "DataGate": None,
    "Transform": None,
    TUNER: lambda config: config.training.tuner_trials is not None,
    TRAINER: None,
    BASELINE: None,
    "Evaluator": None,
    SERVING_CHECK: None,
    PUSHER: lambda config: config.push.destination != "none",
    REPORT: None,
}
"""Id of each node, in the order in which the local engine runs them -> whether the pipeline of some
settings has it; None: every pipeline."""


def node_ids(config: PipelineConfig) -> list[str]:
    """Return the ids of the nodes of a pipeline, in their order."""
    return [name for name, exists in NODES.items() if exists is None or exists(config)]
