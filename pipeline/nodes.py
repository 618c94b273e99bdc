"""The ids of the pipeline's nodes. This module imports no TFX, whose import takes seconds."""

from __future__ import annotations

from components.properties import REPORT_NODE as REPORT
from pipeline.config import PipelineConfig

BASELINE = "LatestBlessedModel"
WARM_START = "WarmStartModel"
TUNER = "Tuner"
TRAINER = "Trainer"
SERVING_CHECK = "ServingCheck"
PUSHER = "Pusher"


def node_ids(config: PipelineConfig) -> list[str]:
    """Return the ids of the nodes, in the order in which the local engine runs them."""
    training = config.training
    return [
        "ReviewExampleGen",
        "ReviewSchemaGen",
        *([WARM_START] if training.warm_start else []),
        "StatisticsGen",
        "ExampleValidator",
        "DataGate",
        "Transform",
        *([TUNER] if training.tuner_trials is not None else []),
        TRAINER,
        BASELINE,
        "Evaluator",
        SERVING_CHECK,
        *([PUSHER] if config.push.destination != "none" else []),
        REPORT,
    ]
