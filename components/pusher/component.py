"""VersionPusher: TFX's Pusher with an executor of our own."""

from __future__ import annotations

import hashlib
from pathlib import Path

from tfx.components import Pusher
from tfx.dsl.components.base import executor_spec
from tfx.proto import pusher_pb2
from tfx.types import BaseChannel

from components.pusher.executor import KEY, Executor

_DIGEST_KEY = "private_key_digest"


class VersionPusher(Pusher):
    """Copies a model that has both blessings to a new version, with a signature if there is a key.

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
        private_key: str | None = None,
    ):
        """Construct the component.

        Args:
          model: the SavedModel.
          model_blessing: the Evaluator's blessing of the model.
          infra_blessing: the ServingCheck's blessing of the model.
          serving_dir: the folder of all versions.
          private_key: the file with the key, on the machine that runs the component. If this
            machine has the file, its digest is a part of the cache key: a model must be signed
            again by a new key.
        """
        folder = pusher_pb2.PushDestination.Filesystem(base_directory=serving_dir)
        key = {KEY: private_key, _DIGEST_KEY: _digest(private_key)} if private_key else {}
        super().__init__(
            model=model,
            model_blessing=model_blessing,
            infra_blessing=infra_blessing,
            push_destination=pusher_pb2.PushDestination(filesystem=folder),
            custom_config=key,
        )


def _digest(file: str) -> str:
    """Return a digest of a file; empty if it is not on this machine."""
    try:
        return hashlib.sha256(Path(file).read_bytes()).hexdigest()
    except OSError:
        return ""
