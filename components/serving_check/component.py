"""ServingCheck: loads and calls a model as a server does, and blocks the push if it fails."""

from __future__ import annotations

from tfx import types
from tfx.dsl.components.base import base_component, executor_spec
from tfx.types import standard_artifacts, standard_component_specs
from tfx.types.component_spec import ChannelParameter, ExecutionParameter

from components.serving_check import executor, golden
from components.serving_check.settings import Serving


class ServingCheckSpec(types.ComponentSpec):
    """The interface of ServingCheck."""

    PARAMETERS = {
        executor.SETTINGS_KEY: ExecutionParameter(type=str),
        executor.GOLDEN_KEY: ExecutionParameter(type=str),
    }
    INPUTS = {
        standard_component_specs.MODEL_KEY: ChannelParameter(type=standard_artifacts.Model),
        standard_component_specs.EXAMPLES_KEY: ChannelParameter(type=standard_artifacts.Examples),
        standard_component_specs.EVALUATION_KEY: ChannelParameter(
            type=standard_artifacts.ModelEvaluation
        ),
    }
    OUTPUTS = {
        standard_component_specs.BLESSING_KEY: ChannelParameter(
            type=standard_artifacts.InfraBlessing
        )
    }


class ServingCheck(base_component.BaseComponent):
    """A model, raw Examples and the model's evaluation -> `blessing`, which a Pusher takes as
    `infra_blessing`.

    TFX's InfraValidator requires Docker or a Kubernetes cluster, and only sends requests.
    """

    SPEC_CLASS = ServingCheckSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(executor.Executor)

    def __init__(
        self,
        model: types.BaseChannel,
        examples: types.BaseChannel,
        evaluation: types.BaseChannel,
        settings: Serving,
    ):
        """Construct the component.

        Args:
          model: the candidate.
          examples: raw Examples, of which the split `test` was evaluated.
          evaluation: the Evaluator's evaluation of the model.
          settings: the thresholds. The golden sentences are read here, so that their text is a part
            of the cache key and of a compiled pipeline.

        Raises:
          ConfigError: the golden sentences are not readable.
        """
        sentences = golden.read_golden(settings.golden)
        super().__init__(
            spec=ServingCheckSpec(
                model=model,
                examples=examples,
                evaluation=evaluation,
                # The property `golden` has the text of the golden sentences instead of the path.
                settings=settings.model_dump_json(exclude={"golden"}),
                golden=golden.encode(sentences),
                blessing=types.Channel(type=standard_artifacts.InfraBlessing),
            )
        )
