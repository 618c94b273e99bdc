"""Executor of Trainer: TFX's own, with the parameters of the run in the training's settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tfx import types
from tfx.components.trainer.executor import GenericExecutor
from tfx.types import standard_component_specs
from tfx.utils import json_utils

from components.baseline.served import existing_model
from components.trainer.parameters import training_of_run
from trainer_module.settings import Training

EPOCHS_KEY = "epochs"
STRATEGY_KEY = "strategy"


class Executor(GenericExecutor):
    """TFX's GenericExecutor, with `epochs` and `strategy` as parameters of the run."""

    def Do(
        self,
        input_dict: dict[str, list[types.Artifact]],
        output_dict: dict[str, list[types.Artifact]],
        exec_properties: dict[str, Any],
    ) -> None:
        """See TFX's GenericExecutor."""
        super().Do(
            existing_model(input_dict, standard_component_specs.BASE_MODEL_KEY),
            output_dict,
            with_run_parameters(exec_properties),
        )


def with_run_parameters(exec_properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the execution properties with `epochs` and `strategy` in `custom_config`.

    Raises:
      InputError: a value is not allowed, or the compiled pipeline does not support it.
    """
    config = json_utils.loads(exec_properties[standard_component_specs.CUSTOM_CONFIG_KEY])
    given = {key: exec_properties[key] for key in (EPOCHS_KEY, STRATEGY_KEY)}
    training_of_run(Training.model_validate(config["training"]), given)
    config["training"] = {**config["training"], **given}
    return {
        **exec_properties,
        standard_component_specs.CUSTOM_CONFIG_KEY: json_utils.dumps(config),
    }
