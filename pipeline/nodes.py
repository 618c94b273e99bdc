"""The ids of the nodes of the pipeline, in their order. This module imports nothing that is slow.

`pipeline.selected_nodes` has the nodes of a pipeline with some settings.
"""

from __future__ import annotations

from components.properties import REPORT_NODE as REPORT

EXAMPLE_GEN = "ReviewExampleGen"
SERVED_MODEL = "ServedModel"
"""The node of the served model, which is the baseline of the candidate."""
WARM_START = "WarmStartModel"
"""The node of the served model, from which a warm start continues."""
TRANSFORM = "Transform"
TUNER = "Tuner"
TRAINER = "Trainer"
EVALUATOR = "Evaluator"
SERVING_CHECK = "ServingCheck"
PUSHER = "Pusher"

NODES = (
    EXAMPLE_GEN,
    WARM_START,
    "SchemaGen",
    "StatisticsGen",
    "ExampleValidator",
    "DataGate",
    TRANSFORM,
    TUNER,
    TRAINER,
    SERVED_MODEL,
    EVALUATOR,
    SERVING_CHECK,
    PUSHER,
    REPORT,
)
"""The id of every node of any pipeline, in the order in which the local engine runs them."""
