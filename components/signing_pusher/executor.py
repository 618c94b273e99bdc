"""Executor of SigningPusher: signs a copy of the model, which TFX's executor then pushes."""

from __future__ import annotations

import os
import tempfile
from typing import Any

from tfx import types
from tfx.components.pusher import executor as tfx_executor
from tfx.types import standard_component_specs
from tfx.utils import io_utils, json_utils

from serving.signing.model import sign_model
from serving.signing.settings import private_key

KEY = "private_key"
"""The key of `custom_config` with the file of the private key."""


class Executor(tfx_executor.Executor):
    """Pushes the model with its signature if it has both blessings."""

    def Do(
        self,
        input_dict: dict[str, list[types.Artifact]],
        output_dict: dict[str, list[types.Artifact]],
        exec_properties: dict[str, Any],
    ) -> None:
        """See TFX's Pusher.

        Raises:
          ConfigError: the private key cannot be used.
        """
        config = json_utils.loads(exec_properties[standard_component_specs.CUSTOM_CONFIG_KEY])
        with tempfile.TemporaryDirectory(prefix="signed-model-") as self._scratch:
            self._key = private_key(config[KEY])
            super().Do(input_dict, output_dict, exec_properties)

    def GetModelPath(self, input_dict: dict[str, list[types.Artifact]]) -> str:
        """Return the folder of a signed copy of the model."""
        source = super().GetModelPath(input_dict).rstrip("/")
        signed = os.path.join(self._scratch, os.path.basename(source))
        io_utils.copy_dir(source, signed)
        sign_model(signed, self._key)
        return signed
