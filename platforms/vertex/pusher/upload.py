"""The upload of a pushed model, and of its serving container, to Vertex AI's model registry."""

from __future__ import annotations

import hashlib
from typing import Any

from absl import logging
from google.api_core import exceptions
from google.cloud.aiplatform_v1 import types

from platforms.google_cloud import api as vertex_api
from platforms.google_cloud.api import errors_in_one_line, retrying
from platforms.vertex.pusher.operations import LABELS, wait_for, wait_for_earlier
from platforms.vertex.pusher.settings import EndpointSettings

_REST_PORT, _GRPC_PORT = 8080, 8500
_POLL_SECONDS = 60
"""Interval at which TensorFlow Serving polls the bucket for newer versions, which never appear. The
default is one second."""


class Upload:
    """The upload of one model; every attempt of a push uses the same model id.

    Args:
      client: a ModelServiceClient.
      settings: the serving container.
      artifact_uri: folder that contains the model in a subfolder whose name is a number.

    Attributes:
      model_id: the last part of the model's resource name, which depends on `artifact_uri`.
    """

    def __init__(self, client: Any, settings: EndpointSettings, artifact_uri: str):
        self._client = client
        self._settings = settings
        self._artifact_uri = artifact_uri
        digest = hashlib.sha256(artifact_uri.encode()).hexdigest()[:16]
        # At most 63 characters.
        self.model_id = f"{settings.model_name[:46]}-{digest}"
        self._name = f"{settings.parent}/models/{self.model_id}"

    def is_done(self) -> bool:
        """Return whether the model exists, after the end of an earlier attempt's upload."""
        with errors_in_one_line("look for the model"):
            wait_for_earlier(self._client, self._name, self._settings.poll_seconds)
            try:
                self._client.get_model(name=self._name, **retrying())
            except exceptions.NotFound:
                return False
        return True

    def start_and_wait(self) -> None:
        """Upload the model; return when the upload has ended."""
        name = self._settings.model_name
        container = types.ModelContainerSpec(
            image_uri=self._settings.image,
            command=["/usr/bin/tensorflow_model_server"],
            args=[
                f"--port={_GRPC_PORT}",
                f"--rest_api_port={_REST_PORT}",
                f"--model_name={name}",
                # Vertex AI replaces the variable by the folder with its copy of the model.
                "--model_base_path=$(AIP_STORAGE_URI)",
                f"--file_system_poll_wait_seconds={_POLL_SECONDS}",
            ],
            ports=[types.Port(container_port=_REST_PORT)],
            predict_route=f"/v1/models/{name}:predict",
            health_route=f"/v1/models/{name}",
        )
        model = types.Model(
            display_name=name,
            artifact_uri=self._artifact_uri,
            container_spec=container,
            labels=LABELS,
        )
        logging.info("Uploading %s from %s", self._name, self._artifact_uri)
        request = {"parent": self._settings.parent, "model": model, "model_id": self.model_id}
        with errors_in_one_line("upload the model"):
            started = self._client.upload_model(
                request=request, retry=None, timeout=vertex_api.REQUEST_SECONDS
            )
            wait_for(self._client, started.operation, self._settings.poll_seconds)
