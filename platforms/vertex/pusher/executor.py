"""Executor of VertexPusher: copies the model for TensorFlow Serving and deploys it."""

from __future__ import annotations

import os
import time
from typing import Any

from absl import logging
from tfx import types
from tfx.types import standard_component_specs
from tfx.utils import io_utils, json_utils

from components.pusher import BlessedExecutor
from platforms.vertex.pusher.settings import ENDPOINT_KEY, EndpointSettings

ATTEMPTS = 3
"""Attempts of a push whose requests get no response; a retry repeats only the missing steps."""
_VERSION = "1"
"""Name of the model's folder; TensorFlow Serving requires a number."""


class Executor(BlessedExecutor):
    """Deploys the model; a retry continues a push that was killed."""

    def push(
        self,
        input_dict: dict[str, list[types.Artifact]],
        uri: str,
        exec_properties: dict[str, Any],
    ) -> tuple[str, str]:
        """See `BlessedExecutor`.

        Raises:
          InputError: Vertex AI refuses a setting.
          RuntimeError: Vertex AI does not respond, or failed to deploy the model.
        """
        config = json_utils.loads(exec_properties[standard_component_specs.CUSTOM_CONFIG_KEY])
        settings = EndpointSettings(**config[ENDPOINT_KEY])
        for _ in range(1, ATTEMPTS):
            try:
                return self._push(input_dict, uri, settings)
            except RuntimeError as error:
                logging.warning("%s; retrying", error)
                time.sleep(settings.poll_seconds)
        return self._push(input_dict, uri, settings)

    def _push(
        self, input_dict: dict[str, list[types.Artifact]], uri: str, settings: EndpointSettings
    ) -> tuple[str, str]:
        """Return the resource name of the endpoint and the id of the model."""
        # The import of the clients takes seconds, and a compilation does not use them.
        from google.cloud.aiplatform_v1.services.endpoint_service import EndpointServiceClient
        from google.cloud.aiplatform_v1.services.model_service import ModelServiceClient

        from platforms.google_cloud import api as vertex_api
        from platforms.vertex.pusher.deployment import Deployment
        from platforms.vertex.pusher.upload import Upload

        models = vertex_api.connect(ModelServiceClient, settings.region)
        endpoints = vertex_api.connect(EndpointServiceClient, settings.region)
        upload = Upload(models, settings, uri)
        if not upload.is_done():
            io_utils.copy_dir(self.GetModelPath(input_dict), os.path.join(uri, _VERSION))
            upload.start_and_wait()
        return Deployment(endpoints, settings, upload.model_id).replace(), upload.model_id
