"""The endpoint on Vertex AI as a destination, to which models are uploaded and deployed.

TFX's own Pusher for Vertex AI passes no routes to the serving container, and never undeploys a
model. Here the new model replaces its predecessor, which serves until the new one is ready. Each
step first reads the state of Vertex AI. A retry of a killed push therefore repeats all steps, but
changes only what is missing.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from absl import logging
from google.api_core import exceptions
from google.cloud.aiplatform_v1 import types as vertex_types
from google.cloud.aiplatform_v1.services.endpoint_service import EndpointServiceClient
from google.cloud.aiplatform_v1.services.model_service import ModelServiceClient
from google.protobuf.field_mask_pb2 import FieldMask

from components.destination import ROLLED_BACK, SERVED, Destination, Push, PushedModel
from components.saved_models import copy_folder
from pipeline.cluster_settings import Vertex
from platforms.vertex import api as vertex_api
from platforms.vertex.api import ApiError, errors_in_one_line, retrying
from serving.identity import identity

POLL_SECONDS = 10.0
"""Seconds between two requests for the state of an operation."""
ATTEMPTS = 3
"""Number of attempts of a push whose requests get no response."""
_VERSION = "1"
"""Name of the model's folder; TensorFlow Serving requires a number."""
_LABELS = {"managed_by": "amazon-reviews"}
"""The labels of the endpoint and its models. Others of the project may have the same name."""
_ROLLED_BACK = "rolled_back"
"""Key of a model's label. Its value is `true` from a rollback to another model until the model is
served again."""
_OPERATION_HOURS = 2.0
"""Timeout of an operation in hours; Vertex AI itself ends a deployment after that time."""
_REST_PORT, _GRPC_PORT = 8080, 8500


class Endpoint(Destination):
    """The endpoint, and the models that were pushed to it.

    All methods raise InputError if Vertex AI refuses a setting, and RuntimeError if it does not
    respond or failed to deploy the model.

    Args:
      vertex: the settings of the section `vertex`.
      name: the name of the pipeline.

    Attributes:
      name: the name of the pipeline with dashes. It is the display name of the endpoint and of all
        models, the name of the model in TensorFlow Serving, and the beginning of the models' ids.
    """

    setting = "push.destination: vertex"
    repair = "run `amazon-reviews rollback` to serve the model before it"

    def __init__(self, vertex: Mapping[str, Any], name: str):
        self.name = name.replace("_", "-")
        self.location = f"the endpoint {self.name}"
        self._vertex = Vertex(**vertex)
        self._parent = vertex_api.location(self._vertex.project, self._vertex.region)
        self._named = {"parent": self._parent, "filter": f'display_name="{self.name}"'}

    @cached_property
    def _models(self) -> Any:
        return vertex_api.connect(ModelServiceClient, self._vertex.region or "")

    @cached_property
    def _endpoints(self) -> Any:
        return vertex_api.connect(EndpointServiceClient, self._vertex.region or "")

    def push(self, model: str, uri: str, reference: str | None = None) -> Push:
        """Push a SavedModel, and copy it to the subfolder `1` of the folder of the artifact.

        A push without a response from Vertex AI is repeated up to ATTEMPTS times.

        Args:
          model: the folder of the SavedModel, or its URL.
          uri: the URL of the artifact `pushed_model`, a folder in a bucket.
          reference: not pushed, so nothing is compared with a model of an endpoint.

        Raises:
          InputError: the model is incomplete or was rolled back, or Vertex AI refuses a setting.
          RuntimeError: Vertex AI does not respond, or failed to deploy the model.
          OSError, tensorflow.errors.OpError: the artifact cannot be written.
        """
        model_identity = identity(model)
        # Every push of the model has the same id, which has at most 63 characters.
        model_id = f"{self.name[:46]}-{model_identity}"
        attempt = 0
        while True:
            attempt += 1
            try:
                self.check_not_rolled_back(model_identity)
                copy_folder(model, os.path.join(uri, _VERSION))
                self.upload(model_id, uri)
                return Push(self.serve(model_id), model_id)
            except RuntimeError as error:
                if attempt == ATTEMPTS:
                    raise
                logging.warning("%s; retrying", error)
                time.sleep(POLL_SECONDS)

    @errors_in_one_line("upload the model")
    def upload(self, model_id: str, artifact_uri: str) -> None:
        """Upload the model with its serving container, unless it exists; wait for the upload.

        Args:
          model_id: the id of the model on Vertex AI.
          artifact_uri: the URL of a folder in a bucket, which contains the model in a subfolder
            whose name is a number.

        Raises:
          InputError: Vertex AI refuses a setting.
          RuntimeError: Vertex AI does not respond, or failed to upload the model.
        """
        # An earlier attempt may have started the upload.
        self._wait_for_earlier(self._models, self._resource(model_id))
        with contextlib.suppress(exceptions.NotFound):
            self._models.get_model(name=self._resource(model_id), **retrying())
            return
        container = vertex_types.ModelContainerSpec(
            image_uri=self._vertex.serving_image or "",
            command=["/usr/bin/tensorflow_model_server"],
            args=[
                f"--port={_GRPC_PORT}",
                f"--rest_api_port={_REST_PORT}",
                f"--model_name={self.name}",
                # Vertex AI replaces the variable by the folder with its copy of the model.
                "--model_base_path=$(AIP_STORAGE_URI)",
                # No newer version can appear in that folder, and the default is one second.
                "--file_system_poll_wait_seconds=60",
            ],
            ports=[vertex_types.Port(container_port=_REST_PORT)],
            predict_route=f"/v1/models/{self.name}:predict",
            health_route=f"/v1/models/{self.name}",
        )
        model = vertex_types.Model(
            display_name=self.name,
            artifact_uri=artifact_uri,
            container_spec=container,
            labels=_LABELS,
        )
        request = {"parent": self._parent, "model": model, "model_id": model_id}
        self._run(self._models, "upload_model", request)

    @errors_in_one_line("deploy the model")
    def serve(self, model_id: str) -> str:
        """Deploy a model, move all traffic to it, and undeploy all other models.

        Args:
          model_id: the id of an uploaded model on Vertex AI.

        Returns:
          The resource name of the endpoint.

        Raises:
          InputError: Vertex AI refuses a setting.
          RuntimeError: Vertex AI does not respond, or failed to deploy the model.
        """
        resource = self._find_endpoint() or self._create_endpoint()
        self._wait_for_earlier(self._endpoints, resource)
        endpoint = self._endpoints.get_endpoint(name=resource, **retrying())
        if model_id not in map(_deployed_id, endpoint.deployed_models):
            self._deploy(resource, model_id)
            endpoint = self._endpoints.get_endpoint(name=resource, **retrying())
        ids = {_deployed_id(each): each.id for each in endpoint.deployed_models}
        split = {ids[model_id]: 100}
        if dict(endpoint.traffic_split) != split:
            logging.info("Moving the traffic of %s to %s", resource, model_id)
            moved = vertex_types.Endpoint(name=resource, traffic_split=split)
            mask = FieldMask(paths=["traffic_split"])
            self._endpoints.update_endpoint(endpoint=moved, update_mask=mask, **retrying())
        for other in endpoint.deployed_models:
            if other.id not in split:
                request = {"endpoint": resource, "deployed_model_id": other.id}
                self._run(self._endpoints, "undeploy_model", request)
        return resource

    @errors_in_one_line("list the models")
    def pushed_models(self) -> list[PushedModel]:
        named = self._models.list_models(request=self._named, **retrying())
        found = list(filter(_is_own, named))
        found.sort(key=lambda model: model.create_time, reverse=True)
        served = set()
        resource = self._find_endpoint()
        if resource:
            endpoint = self._endpoints.get_endpoint(name=resource, **retrying())
            split = endpoint.traffic_split
            served = {_deployed_id(each) for each in endpoint.deployed_models if split.get(each.id)}
        pushed = []
        for model in found:
            model_id = model.name.rpartition("/")[2]
            undone = model.labels.get(_ROLLED_BACK) == "true"
            state = SERVED if model_id in served else ROLLED_BACK * undone
            created = model.create_time.timestamp()
            model_identity = model_id.rpartition("-")[2]
            pushed.append(PushedModel(model_id, created, model_identity, state))
        return pushed

    @errors_in_one_line("find the model")
    def folder(self, name: str) -> str:
        model = self._models.get_model(name=self._resource(name), **retrying())
        return os.path.join(model.artifact_uri, _VERSION)

    def find_name(self, location: str) -> str | None:
        """Return None, because all models are pushed to the same endpoint."""
        return None

    def state(self) -> str | None:
        """Return None, because the state cannot be read without requests to Vertex AI."""
        return None

    def _check_loads(self, model: PushedModel) -> None:
        """Leave the check to Vertex AI.

        Vertex AI has a copy of each uploaded model. It deploys the copy before the traffic moves,
        and fails if the container cannot load it.
        """

    @errors_in_one_line("roll the model back")
    def _serve_again(self, model: PushedModel) -> None:
        replaced = self.served()
        # The labels change first, so that a retry of a killed rollback chooses the same model.
        try:
            self._label(model, is_rolled_back=False)
            if replaced:
                self._label(replaced, is_rolled_back=True)
            self.serve(model.name)
        except Exception:
            self._label(model, is_rolled_back=model.state == ROLLED_BACK)
            if replaced:
                self._label(replaced, is_rolled_back=False)
            raise

    def _label(self, model: PushedModel, *, is_rolled_back: bool) -> None:
        labelled = self._models.get_model(name=self._resource(model.name), **retrying())
        labelled.labels[_ROLLED_BACK] = str(is_rolled_back).lower()
        mask = FieldMask(paths=["labels"])
        self._models.update_model(model=labelled, update_mask=mask, **retrying())

    def _resource(self, model_id: str) -> str:
        return f"{self._parent}/models/{model_id}"

    def _find_endpoint(self) -> str | None:
        named = self._endpoints.list_endpoints(request=self._named, **retrying())
        oldest = min(
            filter(_is_own, named), key=lambda endpoint: endpoint.create_time, default=None
        )
        return str(oldest.name) if oldest else None

    def _create_endpoint(self) -> str:
        # Each attempt uses the same id, so that a retry creates no second endpoint.
        digest = hashlib.sha256(self.name.encode()).hexdigest()
        endpoint_id = f"amazon-reviews-{digest[:16]}"
        endpoint = vertex_types.Endpoint(display_name=self.name, labels=_LABELS)
        request = {"parent": self._parent, "endpoint": endpoint, "endpoint_id": endpoint_id}
        with contextlib.suppress(exceptions.AlreadyExists):
            self._run(self._endpoints, "create_endpoint", request)
        return f"{self._parent}/endpoints/{endpoint_id}"

    def _deploy(self, endpoint: str, model_id: str) -> None:
        machine = vertex_types.MachineSpec(machine_type=self._vertex.machine_type)
        # There is no traffic split, because `serve` moves the traffic after the deployment.
        deployed = vertex_types.DeployedModel(
            model=self._resource(model_id),
            display_name=self.name,
            dedicated_resources=vertex_types.DedicatedResources(
                machine_spec=machine, min_replica_count=1, max_replica_count=1
            ),
        )
        request = {"endpoint": endpoint, "deployed_model": deployed}
        self._run(self._endpoints, "deploy_model", request)

    def _run(self, client: Any, method: str, request: dict[str, Any]) -> None:
        """Start an operation and wait for its end.

        Args:
          client: a client of Vertex AI.
          method: the name of the client's method that starts the operation.
          request: the fields of the request.
        """
        logging.info("%s of %s on Vertex AI", method, self.name)
        started = getattr(client, method)(
            request=request, retry=None, timeout=vertex_api.REQUEST_SECONDS
        )
        self._wait_for(client, started.operation)

    def _wait_for(self, client: Any, operation: Any) -> None:
        deadline = time.monotonic() + _OPERATION_HOURS * 3600
        while not operation.done:
            if time.monotonic() > deadline:
                raise ApiError(f"{operation.name} is not done after {_OPERATION_HOURS:g} hours")
            time.sleep(POLL_SECONDS)
            operation = client.get_operation(request={"name": operation.name}, **retrying())
        if operation.error.code:
            raise exceptions.from_grpc_status(operation.error.code, operation.error.message)

    def _wait_for_earlier(self, client: Any, resource: str) -> None:
        """Wait for the operations of an earlier, killed push on a model or an endpoint."""
        try:
            found = client.list_operations(request={"name": resource}, **retrying()).operations
        except exceptions.NotFound:
            return
        for operation in found:
            # An error is ignored, because this attempt repeats a failed operation.
            with contextlib.suppress(exceptions.GoogleAPICallError):
                if not operation.done:
                    logging.info("Waiting for %s", operation.name)
                    self._wait_for(client, operation)


def _deployed_id(deployed: vertex_types.DeployedModel) -> str:
    """Return the id of a deployed model, without the rest of its resource name."""
    return str(deployed.model.rpartition("/")[2].partition("@")[0])


def _is_own(resource: vertex_types.Endpoint | vertex_types.Model) -> bool:
    """Return whether an endpoint or a model has the labels of this module."""
    return _LABELS.items() <= dict(resource.labels).items()
