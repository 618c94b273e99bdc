"""VertexPusher: TFX's Pusher with an executor of our own."""

from __future__ import annotations

from tfx.components import Pusher
from tfx.dsl.components.base import executor_spec
from tfx.types import BaseChannel

from platforms.vertex.pusher.executor import Executor
from platforms.vertex.pusher.settings import ENDPOINT_KEY, EndpointSettings


class VertexPusher(Pusher):
    """Deploys a model that has both blessings to an endpoint.

    TFX's own Pusher for Vertex AI passes no routes to the serving container, and never undeploys a
    model.
    """

    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(Executor)

    def __init__(
        self,
        model: BaseChannel,
        model_blessing: BaseChannel,
        infra_blessing: BaseChannel,
        endpoint: EndpointSettings,
    ):
        """Construct the component.

        Args:
          model: the SavedModel.
          model_blessing: the Evaluator's blessing of the model.
          infra_blessing: the ServingCheck's blessing of the model.
          endpoint: the endpoint that the model is deployed to.
        """
        super().__init__(
            model=model,
            model_blessing=model_blessing,
            infra_blessing=infra_blessing,
            custom_config={ENDPOINT_KEY: endpoint.model_dump()},
        )
