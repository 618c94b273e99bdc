"""VersionPusher: TFX's Pusher with an executor of our own."""

from __future__ import annotations

from tfx.components import Pusher
from tfx.dsl.components.base import executor_spec
from tfx.proto import pusher_pb2
from tfx.types import BaseChannel

from components.pusher.executor import Executor


class VersionPusher(Pusher):
    """Copies a model that has both blessings to a new version.

    TFX's own Pusher names a version by the clock alone. After a change of the clock, an older model
    would stay the newest version, and in the same second the Pusher would copy nothing.
    """

    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(Executor)

    def __init__(
        self,
        model: BaseChannel,
        model_blessing: BaseChannel,
        infra_blessing: BaseChannel,
        serving_dir: str,
    ):
        """Construct the component.

        Args:
          model: the SavedModel.
          model_blessing: the Evaluator's blessing of the model.
          infra_blessing: the ServingCheck's blessing of the model.
          serving_dir: the folder of all versions.
        """
        folder = pusher_pb2.PushDestination.Filesystem(base_directory=serving_dir)
        super().__init__(
            model=model,
            model_blessing=model_blessing,
            infra_blessing=infra_blessing,
            push_destination=pusher_pb2.PushDestination(filesystem=folder),
        )
