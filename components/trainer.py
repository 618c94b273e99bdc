"""Trainer: TFX's Trainer, with the epochs and the strategy as parameters of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tfx import types
from tfx.components.trainer.executor import GenericExecutor
from tfx.dsl.components.base import base_component, executor_spec
from tfx.types import standard_artifacts
from tfx.types import standard_component_specs as specs
from tfx.types.component_spec import ExecutionParameter
from tfx.types.standard_component_specs import BASE_MODEL_KEY, CUSTOM_CONFIG_KEY, EXAMPLES_KEY
from tfx.utils import json_utils

from components.baseline import existing_model
from components.properties import UNSEEN_SPAN_PROPERTY
from core.errors import InputError
from core.settings import with_parameters
from trainer_module.cluster.resources import count_processes
from trainer_module.settings import Training

EPOCHS_KEY = "epochs"
STRATEGY_KEY = "strategy"


class TrainerExecutor(GenericExecutor):
    """TFX's executor, with the parameters of the run, and without a base model that does not exist.

    `Do` raises an InputError if a parameter is not allowed, or if the base model is unknown or
    damaged.
    """

    def Do(
        self,
        input_dict: dict[str, list[types.Artifact]],
        output_dict: dict[str, list[types.Artifact]],
        exec_properties: dict[str, Any],
    ) -> None:
        inputs = existing_model(input_dict, BASE_MODEL_KEY)
        super().Do(inputs, output_dict, with_run_parameters(input_dict, exec_properties))


class TrainerSpec(types.ComponentSpec):
    """The inputs, outputs and parameters of TFX's Trainer, and `epochs` and `strategy`."""

    PARAMETERS = {
        **specs.TrainerSpec.PARAMETERS,
        EPOCHS_KEY: ExecutionParameter(type=int),
        STRATEGY_KEY: ExecutionParameter(type=str),
    }
    INPUTS = specs.TrainerSpec.INPUTS
    OUTPUTS = specs.TrainerSpec.OUTPUTS


class Trainer(base_component.BaseComponent):
    """The component that trains a model on transformed Examples.

    The outputs are `model` and `model_run`. The class does not extend TFX's Trainer, because the
    constructor of TFX's class allows no further parameters.

    Args:
      custom_config: `trainer_module.settings.CustomConfig` as a dictionary.
      **arguments: the other inputs and parameters of `TrainerSpec`. `epochs` and `strategy` replace
        `training.epochs` and `training.strategy` in `custom_config`.
    """

    SPEC_CLASS = TrainerSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(TrainerExecutor)

    def __init__(self, custom_config: dict[str, Any], **arguments: Any) -> None:
        super().__init__(
            spec=TrainerSpec(
                custom_config=json_utils.dumps(custom_config),
                model=types.Channel(type=standard_artifacts.Model),
                model_run=types.Channel(type=standard_artifacts.ModelRun),
                **arguments,
            )
        )


def with_run_parameters(
    input_dict: Mapping[str, list[types.Artifact]], exec_properties: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the execution properties with those of a run in `custom_config`.

    These are `epochs`, `strategy`, and the first span that the train split lacks.

    Args:
      input_dict: the inputs of a Trainer.
      exec_properties: the execution properties of a Trainer.

    Raises:
      InputError: see `with_training_parameters`.
    """
    config = json_utils.loads(exec_properties[CUSTOM_CONFIG_KEY])
    given = {key: exec_properties[key] for key in (EPOCHS_KEY, STRATEGY_KEY)}
    training = with_training_parameters(Training.model_validate(config["training"]), given)
    # A platform may pass a number as text.
    config["training"] |= {key: getattr(training, key) for key in given}
    [examples] = input_dict[EXAMPLES_KEY]
    if examples.has_custom_property(UNSEEN_SPAN_PROPERTY):
        config["unseen_span"] = examples.get_int_custom_property(UNSEEN_SPAN_PROPERTY)
    return {**exec_properties, CUSTOM_CONFIG_KEY: json_utils.dumps(config)}


def with_training_parameters(compiled: Training, given: Mapping[str, Any]) -> Training:
    """Return the settings of a training with the parameters of a run.

    Args:
      compiled: the section `training` of the compiled pipeline.
      given: `epochs` and `strategy` -> the value in the run.

    Raises:
      InputError: a value is not allowed, or requires another number of processes than the compiled
        pipeline has.
    """
    training = with_parameters(compiled, given)
    if count_processes(compiled) != count_processes(training):
        raise InputError(
            f"parameter strategy: {training.strategy} requires other processes than those of the "
            f"compiled pipeline; set training.strategy: {training.strategy} in the settings and "
            "compile again"
        )
    return training
