"""SigningPusher: TFX's Pusher with an executor of our own."""

from __future__ import annotations

from tfx.components import Pusher
from tfx.dsl.components.base import executor_spec
from tfx.proto import pusher_pb2
from tfx.types import BaseChannel

from components.signing_pusher.executor import KEY, Executor


class SigningPusher(Pusher):
    """Copies a model that has both blessings to a new version, with a signature."""

    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(Executor)

    def __init__(
        self,
        model: BaseChannel,
        model_blessing: BaseChannel,
        infra_blessing: BaseChannel,
        push_destination: pusher_pb2.PushDestination,
        private_key: str,
    ):
        """Construct the component.

        Args:
          model: the SavedModel.
          model_blessing: the Evaluator's blessing of the model.
          infra_blessing: the ServingCheck's blessing of the model.
          push_destination: the folder of all versions.
          private_key: the file with the key, on the machine that runs the component.
        """
        super().__init__(
            model=model,
            model_blessing=model_blessing,
            infra_blessing=infra_blessing,
            push_destination=push_destination,
            custom_config={KEY: private_key},
        )
