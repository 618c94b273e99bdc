"""BatchEvaluator: TFX's Evaluator in large batches, and its threshold as a parameter of a run."""

from __future__ import annotations

from tensorflow_model_analysis.proto import config_pb2
from tfx import types
from tfx.dsl.components.base import base_beam_component, executor_spec
from tfx.orchestration.data_types import RuntimeParameter
from tfx.types import BaseChannel, standard_artifacts, standard_component_specs
from tfx.types.component_spec import ExecutionParameter
from tfx.utils import json_utils

from components.evaluator.executor import BATCHED_KEY, MIN_ACCURACY_KEY, Executor


class BatchEvaluatorSpec(types.ComponentSpec):
    """The interface of TFX's Evaluator, and the parameters `min_accuracy` and `batched`."""

    PARAMETERS = {
        **standard_component_specs.EvaluatorSpec.PARAMETERS,
        MIN_ACCURACY_KEY: ExecutionParameter(type=float),
        BATCHED_KEY: ExecutionParameter(type=int),
    }
    INPUTS = standard_component_specs.EvaluatorSpec.INPUTS
    OUTPUTS = standard_component_specs.EvaluatorSpec.OUTPUTS


class BatchEvaluator(base_beam_component.BaseBeamComponent):
    """Examples, a model and a baseline -> `evaluation` and `blessing`.

    It runs the executor of TFX's Evaluator with `batched=False`, and for metrics and slices that
    cannot be computed in batches.

    It is not a subclass of TFX's Evaluator, whose constructor allows no further parameters.
    """

    SPEC_CLASS = BatchEvaluatorSpec
    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(Executor)

    def __init__(
        self,
        examples: BaseChannel,
        example_splits: list[str],
        model: BaseChannel,
        baseline_model: BaseChannel,
        eval_config: config_pb2.EvalConfig,
        min_accuracy: float | RuntimeParameter,
        batched: bool,
    ):
        """Construct the component.

        Args:
          examples: raw Examples.
          example_splits: the splits to evaluate.
          model: the candidate.
          baseline_model: the baseline of the candidate.
          eval_config: metrics, slices and thresholds.
          min_accuracy: replaces the lower bound of the accuracy in `eval_config`, from 0 to 1.
          batched: whether the metrics are computed in batches, which takes a fraction of the time.
        """
        super().__init__(
            spec=BatchEvaluatorSpec(
                examples=examples,
                example_splits=json_utils.dumps(example_splits),
                model=model,
                baseline_model=baseline_model,
                eval_config=eval_config,
                # TFX's executor requires JSON here, even without thresholds.
                fairness_indicator_thresholds=json_utils.dumps(None),
                min_accuracy=min_accuracy,
                batched=int(batched),
                evaluation=types.Channel(type=standard_artifacts.ModelEvaluation),
                blessing=types.Channel(type=standard_artifacts.ModelBlessing),
            )
        )
