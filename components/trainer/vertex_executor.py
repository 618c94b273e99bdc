"""Executor of VertexTrainer: TFX's own for a Vertex AI CustomJob, with the run's parameters."""

from __future__ import annotations

from typing import Any

from tfx import types
from tfx.extensions.google_cloud_ai_platform.trainer.executor import GenericExecutor

from components.trainer.executor import with_run_parameters


class VertexExecutor(GenericExecutor):
    """Starts the CustomJob that `custom_config` describes, and waits for its end."""

    def Do(
        self,
        input_dict: dict[str, list[types.Artifact]],
        output_dict: dict[str, list[types.Artifact]],
        exec_properties: dict[str, Any],
    ) -> None:
        """See TFX's GenericExecutor for Google Cloud."""
        super().Do(input_dict, output_dict, with_run_parameters(exec_properties))
