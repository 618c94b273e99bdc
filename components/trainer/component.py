"""Trainer: TFX's Trainer, with epochs and strategy as parameters of a run."""

from __future__ import annotations

from typing import Any

from tfx import types
from tfx.dsl.components.base import base_component, executor_spec
from tfx.orchestration.data_types import RuntimeParameter
from tfx.proto import trainer_pb2
from tfx.types import BaseChannel, standard_artifacts, standard_component_specs
from tfx.types.component_spec import ExecutionParameter
from tfx.utils import json_utils

from components.trainer.executor import EPOCHS_KEY, STRATEGY_KEY, Executor


class TrainerSpec(types.ComponentSpec):
    """The interface of TFX's Trainer, and the parameters `epochs` and `strategy`."""

    PARAMETERS = {
        **standard_component_specs.TrainerSpec.PARAMETERS,
        EPOCHS_KEY: ExecutionParameter(type=int),
        STRATEGY_KEY: ExecutionParameter(type=str),
    }
    INPUTS = standard_component_specs.TrainerSpec.INPUTS
    OUTPUTS = standard_component_specs.TrainerSpec.OUTPUTS


class Trainer(base_component.BaseComponent):
    """Transformed Examples -> `model` and `model_run`.

    It is not a subclass of TFX's Trainer, whose constructor allows no further parameters.
    """

    SPEC_CLASS = TrainerSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(Executor)

    def __init__(
        self,
        run_fn: str,
        examples: BaseChannel,
        transform_graph: BaseChannel,
        epochs: int | RuntimeParameter,
        strategy: str | RuntimeParameter,
        custom_config: dict[str, Any],
        train_args: trainer_pb2.TrainArgs,
        eval_args: trainer_pb2.EvalArgs,
        base_model: BaseChannel | None = None,
        hyperparameters: BaseChannel | None = None,
    ):
        """Construct the component.

        Args:
          run_fn: dotted path of the function that trains.
          examples: transformed Examples.
          transform_graph: the graph that transformed them.
          epochs, strategy: replace `training.epochs` and `training.strategy` in `custom_config`.
          custom_config: see `trainer_module.settings.CustomConfig`.
          train_args, eval_args: the splits for training and evaluation.
          base_model: the initial model of the training.
          hyperparameters: the best hyperparameters of a Tuner.
        """
        super().__init__(
            spec=TrainerSpec(
                run_fn=run_fn,
                examples=examples,
                transform_graph=transform_graph,
                epochs=epochs,
                strategy=strategy,
                custom_config=json_utils.dumps(custom_config),
                train_args=train_args,
                eval_args=eval_args,
                base_model=base_model,
                hyperparameters=hyperparameters,
                model=types.Channel(type=standard_artifacts.Model),
                model_run=types.Channel(type=standard_artifacts.ModelRun),
            )
        )
