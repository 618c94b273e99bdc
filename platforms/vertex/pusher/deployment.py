"""The deployment of a model to an endpoint, where it replaces its predecessor.

Each step first reads the state of the endpoint. A retry of a killed push therefore repeats all
steps, but changes only what is missing. The old model serves until the new one is ready.
"""

from __future__ import annotations

import contextlib
import hashlib
from typing import Any

from absl import logging
from google.api_core import exceptions
from google.cloud.aiplatform_v1 import types
from google.protobuf.field_mask_pb2 import FieldMask

from platforms.google_cloud import api as vertex_api
from platforms.google_cloud.api import ApiError, errors_in_one_line, retrying
from platforms.vertex.pusher.operations import LABELS, wait_for, wait_for_earlier
from platforms.vertex.pusher.settings import EndpointSettings


class Deployment:
    """The deployment of one model.

    Args:
      client: an EndpointServiceClient.
      settings: the endpoint, and the machine type of its server.
      model_id: the last part of the model's resource name.
    """

    def __init__(self, client: Any, settings: EndpointSettings, model_id: str):
        self._client = client
        self._settings = settings
        self._model_id = model_id

    def replace(self) -> str:
        """Deploy the model, move all traffic to it, undeploy all other models.

        Returns:
          The resource name of the endpoint.

        Raises:
          InputError: Vertex AI refuses a setting.
          ApiError: Vertex AI does not respond, or failed to deploy the model.
        """
        name = self._find() or self._create()
        with errors_in_one_line("read the endpoint"):
            wait_for_earlier(self._client, name, self._settings.poll_seconds)
        if self._deployed_id(self._read(name)) is None:
            self._deploy(name)
        endpoint = self._read(name)
        deployed = self._deployed_id(endpoint)
        if deployed is None:
            raise ApiError(f"{name}: the model {self._model_id} disappeared after its deployment")
        if dict(endpoint.traffic_split) != {deployed: 100}:
            logging.info("Moving the traffic of %s to %s", name, self._model_id)
            moved = types.Endpoint(name=name, traffic_split={deployed: 100})
            mask = FieldMask(paths=["traffic_split"])
            with errors_in_one_line("move the traffic"):
                self._client.update_endpoint(endpoint=moved, update_mask=mask, **retrying())
        for other in endpoint.deployed_models:
            if other.id != deployed:
                self._undeploy(name, other)
        return name

    def _find(self) -> str | None:
        request = {
            "parent": self._settings.parent,
            "filter": f'display_name="{self._settings.endpoint}"',
        }
        with errors_in_one_line("list the endpoints"):
            found = list(self._client.list_endpoints(request=request, **retrying()))
        oldest = min(found, key=lambda endpoint: endpoint.create_time, default=None)
        return str(oldest.name) if oldest else None

    def _create(self) -> str:
        display_name = self._settings.endpoint
        # The same id in each attempt, so that a retry creates no second endpoint.
        digest = hashlib.sha256(display_name.encode()).hexdigest()[:16]
        endpoint_id = f"amazon-reviews-{digest}"
        logging.info("Creating the endpoint %s", display_name)
        request = {
            "parent": self._settings.parent,
            "endpoint": types.Endpoint(display_name=display_name, labels=LABELS),
            "endpoint_id": endpoint_id,
        }
        with (
            errors_in_one_line("create the endpoint"),
            contextlib.suppress(exceptions.AlreadyExists),
        ):
            self._run(self._client.create_endpoint, request)
        return f"{self._settings.parent}/endpoints/{endpoint_id}"

    def _deploy(self, endpoint: str) -> None:
        logging.info("Deploying %s to %s, which takes some minutes", self._model_id, endpoint)
        machine = types.MachineSpec(machine_type=self._settings.machine_type)
        deployed = types.DeployedModel(
            model=f"{self._settings.parent}/models/{self._model_id}",
            display_name=self._settings.model_name,
            dedicated_resources=types.DedicatedResources(
                machine_spec=machine, min_replica_count=1, max_replica_count=1
            ),
        )
        # Without a traffic split: `replace` moves the traffic when the model is deployed.
        with errors_in_one_line("deploy the model"):
            self._run(self._client.deploy_model, {"endpoint": endpoint, "deployed_model": deployed})

    def _undeploy(self, endpoint: str, other: types.DeployedModel) -> None:
        logging.info("Undeploying %s", other.model)
        with errors_in_one_line("undeploy the previous model"):
            self._run(
                self._client.undeploy_model,
                {"endpoint": endpoint, "deployed_model_id": other.id},
            )

    def _run(self, method: Any, request: dict[str, Any]) -> None:
        started = method(request=request, retry=None, timeout=vertex_api.REQUEST_SECONDS)
        wait_for(self._client, started.operation, self._settings.poll_seconds)

    def _read(self, name: str) -> types.Endpoint:
        with errors_in_one_line("read the endpoint"):
            return self._client.get_endpoint(name=name, **retrying())

    def _deployed_id(self, endpoint: types.Endpoint) -> str | None:
        """Return the id under which the model is deployed.

        Only the last part of the resource name is compared, because Vertex AI returns the number of
        the project instead of its id.
        """
        for deployed in endpoint.deployed_models:
            if deployed.model.rpartition("/")[2].partition("@")[0] == self._model_id:
                return str(deployed.id)
        return None
