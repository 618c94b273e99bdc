"""The nodes of the pipeline, in their order. This module imports nothing that is slow.

`pipeline.selected_nodes` has the nodes of a pipeline with some settings.
"""

from __future__ import annotations

from components.node_ids import (
    DATA_GATE,
    EVALUATOR,
    EXAMPLE_GEN,
    EXAMPLE_VALIDATOR,
    PUSHER,
    REPORT,
    SCHEMA_GEN,
    SERVED_MODEL,
    SERVING_CHECK,
    STATISTICS_GEN,
    TRAINER,
    TRANSFORM,
    TUNER,
    WARM_START,
)

NODES = (
    EXAMPLE_GEN,
    WARM_START,
    SCHEMA_GEN,
    STATISTICS_GEN,
    EXAMPLE_VALIDATOR,
    DATA_GATE,
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
