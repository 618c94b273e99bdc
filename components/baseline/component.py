"""PushedBaseline: the served model, for an orchestrator without our Resolver strategy."""

from __future__ import annotations

from tfx import types
from tfx.dsl.components.base import base_component, executor_spec
from tfx.types import standard_artifacts
from tfx.types.component_spec import ChannelParameter, ExecutionParameter

from components.baseline import pushed


class PushedBaselineSpec(types.ComponentSpec):
    """The interface of PushedBaseline."""

    PARAMETERS = {
        pushed.SERVING_DIR_KEY: ExecutionParameter(type=str),
    }
    INPUTS = {pushed.CANDIDATE_KEY: ChannelParameter(type=standard_artifacts.Model, optional=True)}
    OUTPUTS = {pushed.MODEL_KEY: ChannelParameter(type=standard_artifacts.Model)}


class PushedBaseline(base_component.BaseComponent):
    """The newest model in `serving_dir` that is not the candidate itself -> `model`.

    It must not be cached, because its output depends on the pushed models.
    """

    SPEC_CLASS = PushedBaselineSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(pushed.Executor)

    def __init__(
        self,
        serving_dir: str,
        candidate: types.BaseChannel | None = None,
    ):
        """Construct the component.

        Args:
          serving_dir: the Pusher's base directory.
          candidate: the model that is compared with the baseline.
        """
        super().__init__(
            spec=PushedBaselineSpec(
                serving_dir=serving_dir,
                candidate=candidate,
                model=types.Channel(type=standard_artifacts.Model),
            )
        )
