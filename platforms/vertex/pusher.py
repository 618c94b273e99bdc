"""VertexPusher: uploads a blessed model to Vertex AI and deploys it to an endpoint.

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
from typing import Annotated, Any

from absl import logging
from google.api_core import exceptions
from google.cloud.aiplatform_v1 import types as vertex_types
from google.cloud.aiplatform_v1.services.endpoint_service import EndpointServiceClient
from google.cloud.aiplatform_v1.services.model_service import ModelServiceClient
from google.protobuf.field_mask_pb2 import FieldMask
from pydantic import Field
from tfx import types
from tfx.components import Pusher
from tfx.dsl.components.base import executor_spec
from tfx.types import BaseChannel, standard_component_specs
from tfx.utils import io_utils, json_utils

from components.pusher import BlessedExecutor, rolled_back_error, version_to_serve
from components.saved_models import identity
from core.settings import Section
from platforms.google_cloud import api as vertex_api
from platforms.google_cloud.api import ApiError, errors_in_one_line, retrying

ENDPOINT_KEY = "endpoint"
"""Key of the settings in `custom_config`; the value is `EndpointSettings.model_dump()`."""
ATTEMPTS = 3
"""Attempts of a push whose requests get no response."""
_VERSION = "1"
"""Name of the model's folder; TensorFlow Serving requires a number."""
_LABELS = {"managed_by": "amazon-reviews"}
_CONTENT, _ROLLED_BACK = "content", "rolled_back"
"""Labels of a model: a digest of its content, and `true` after a rollback to another model."""
_OPERATION_HOURS = 2.0
"""Timeout of an operation in hours; Vertex AI itself ends a deployment after that time."""
_REST_PORT, _GRPC_PORT = 8080, 8500
_SERVER_POLL_SECONDS = 60
"""Interval at which TensorFlow Serving polls the bucket for newer versions, which never appear. The
default is one second."""


class EndpointSettings(Section):
    """The endpoint of a model, and its server.

    Attributes:
      project, region: project and region of Google Cloud.
      name: name of the model in TensorFlow Serving, start of its resource's name, and display name
        of the endpoint, which serves no other model.
      image: image of TensorFlow Serving.
      machine_type: machine type of the server.
      poll_seconds: seconds between two requests for the state of an operation.
    """

    project: str
    region: str
    name: Annotated[str, Field(pattern="^[a-z][a-z0-9-]*$")]
    image: Annotated[str, Field(min_length=1)]
    machine_type: str
    poll_seconds: Annotated[float, Field(gt=0)] = 10.0

    @property
    def parent(self) -> str:
        """The location of the endpoint and the model."""
        return f"projects/{self.project}/locations/{self.region}"


class Executor(BlessedExecutor):
    """Copies the model for TensorFlow Serving, uploads it and deploys it."""

    def push(
        self,
        input_dict: dict[str, list[types.Artifact]],
        uri: str,
        exec_properties: dict[str, Any],
    ) -> tuple[str, str]:
        """See `BlessedExecutor`.

        Returns:
          The resource name of the endpoint and the id of the model.

        Raises:
          InputError: Vertex AI refuses a setting.
          RuntimeError: Vertex AI does not respond, or failed to deploy the model.
        """
        config = json_utils.loads(exec_properties[standard_component_specs.CUSTOM_CONFIG_KEY])
        settings = EndpointSettings(**config[ENDPOINT_KEY])
        for attempt in range(1, ATTEMPTS + 1):
            try:
                endpoint = Endpoint(settings)
                # The same id in every attempt of a push, of at most 63 characters.
                model_id = f"{settings.name[:46]}-{_digest(uri)}"
                if not endpoint.has_uploaded(model_id):
                    model = self.GetModelPath(input_dict)
                    content = hashlib.sha256(identity(model)).hexdigest()[:16]
                    endpoint.check_not_rolled_back(content)
                    io_utils.copy_dir(model, os.path.join(uri, _VERSION))
                    endpoint.upload(model_id, uri, content)
                return endpoint.serve(model_id), model_id
            except RuntimeError as error:
                if attempt == ATTEMPTS:
                    raise
                logging.warning("%s; retrying", error)
                time.sleep(settings.poll_seconds)
        raise AssertionError


class VertexPusher(Pusher):
    """Deploys a model to an endpoint. The first three arguments are those of `VersionPusher`."""

    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(Executor)

    def __init__(
        self,
        model: BaseChannel,
        model_blessing: BaseChannel,
        infra_blessing: BaseChannel,
        endpoint: EndpointSettings,
    ):
        super().__init__(
            model=model,
            model_blessing=model_blessing,
            infra_blessing=infra_blessing,
            custom_config={ENDPOINT_KEY: endpoint.model_dump()},
        )


class Endpoint:
    """The endpoint, and the models that were pushed to it.

    All methods raise the errors of `Executor.push`.
    """

    def __init__(self, settings: EndpointSettings):
        self._settings = settings
        self._models = vertex_api.connect(ModelServiceClient, settings.region)
        self._endpoints = vertex_api.connect(EndpointServiceClient, settings.region)
        self._own = {"parent": settings.parent, "filter": f'display_name="{settings.name}"'}

    def pushed_models(self) -> list[tuple[str, float, str]]:
        """Return the id, the seconds since 1970 and the state of the models, the newest first."""
        models, served = self._pushed(), self._served()
        return [
            (
                model_id,
                model.create_time.timestamp(),
                "served" if model_id == served else "rolled back" * (_ROLLED_BACK in model.labels),
            )
            for model_id, model in models.items()
        ]

    def roll_back(self, model_id: str | None) -> str:
        """Serve an earlier model again; return its id.

        Args:
          model_id: the model; None: the one that was pushed before the served one.

        Raises:
          InputError: there is no such model, or it is served.
        """
        models, served = self._pushed(), self._served()
        undone = {each for each, model in models.items() if _ROLLED_BACK in model.labels}
        place = f"the endpoint {self.name}"
        chosen = version_to_serve(list(models), undone, served, model_id, place)
        self.serve(chosen)
        for each, labels in ((chosen, {}), (served, {_ROLLED_BACK: "true"})):
            if each in models:
                model = models[each]
                kept = {key: value for key, value in model.labels.items() if key != _ROLLED_BACK}
                model.labels = {**kept, **labels}
                mask = FieldMask(paths=["labels"])
                with errors_in_one_line("label the model"):
                    self._models.update_model(model=model, update_mask=mask, **retrying())
        return chosen

    def check_not_rolled_back(self, content: str) -> None:
        """Raise InputError if a model with this digest of its content was rolled back."""
        for model_id, model in self._pushed().items():
            if model.labels.get(_CONTENT) == content and _ROLLED_BACK in model.labels:
                raise rolled_back_error(f"{model_id} of the endpoint {self.name}", model_id)

    def has_uploaded(self, model_id: str) -> bool:
        """Return whether the model exists, after the end of an earlier attempt's upload."""
        with errors_in_one_line("look for the model"):
            self._wait_for_earlier(self._models, self._resource(model_id))
            try:
                self._models.get_model(name=self._resource(model_id), **retrying())
            except exceptions.NotFound:
                return False
        return True

    def upload(self, model_id: str, artifact_uri: str, content: str) -> None:
        """Upload the model with its serving container; return when the upload has ended.

        The folder `artifact_uri` has the model in a subfolder whose name is a number.
        """
        container = vertex_types.ModelContainerSpec(
            image_uri=self._settings.image,
            command=["/usr/bin/tensorflow_model_server"],
            args=[
                f"--port={_GRPC_PORT}",
                f"--rest_api_port={_REST_PORT}",
                f"--model_name={self.name}",
                # Vertex AI replaces the variable by the folder with its copy of the model.
                "--model_base_path=$(AIP_STORAGE_URI)",
                f"--file_system_poll_wait_seconds={_SERVER_POLL_SECONDS}",
            ],
            ports=[vertex_types.Port(container_port=_REST_PORT)],
            predict_route=f"/v1/models/{self.name}:predict",
            health_route=f"/v1/models/{self.name}",
        )
        model = vertex_types.Model(
            display_name=self.name,
            artifact_uri=artifact_uri,
            container_spec=container,
            labels={**_LABELS, _CONTENT: content},
        )
        request = {"parent": self._settings.parent, "model": model, "model_id": model_id}
        with errors_in_one_line("upload the model"):
            self._run(self._models, "upload_model", request)

    def serve(self, model_id: str) -> str:
        """Deploy a model, move all traffic to it, and undeploy all others.

        Returns:
          The resource name of the endpoint.
        """
        with errors_in_one_line("find or create the endpoint"):
            name = self._find() or self._create()
            self._wait_for_earlier(self._endpoints, name)
            endpoint = self._endpoints.get_endpoint(name=name, **retrying())
        if model_id not in map(_model_of, endpoint.deployed_models):
            with errors_in_one_line("deploy the model"):
                self._deploy(name, model_id)
                endpoint = self._endpoints.get_endpoint(name=name, **retrying())
        ids = {_model_of(each): each.id for each in endpoint.deployed_models}
        if model_id not in ids:
            raise ApiError(f"{name}: the model {model_id} disappeared after its deployment")
        split = {ids[model_id]: 100}
        if dict(endpoint.traffic_split) != split:
            logging.info("Moving the traffic of %s to %s", name, model_id)
            moved = vertex_types.Endpoint(name=name, traffic_split=split)
            mask = FieldMask(paths=["traffic_split"])
            with errors_in_one_line("move the traffic"):
                self._endpoints.update_endpoint(endpoint=moved, update_mask=mask, **retrying())
        for other in endpoint.deployed_models:
            if other.id not in split:
                request = {"endpoint": name, "deployed_model_id": other.id}
                with errors_in_one_line("undeploy the previous model"):
                    self._run(self._endpoints, "undeploy_model", request)
        return name

    @property
    def name(self) -> str:
        """The display name of the endpoint and of its models."""
        return self._settings.name

    def _resource(self, model_id: str) -> str:
        return f"{self._settings.parent}/models/{model_id}"

    def _pushed(self) -> dict[str, vertex_types.Model]:
        """Return id -> model of the pushed models, the newest first."""
        with errors_in_one_line("list the models"):
            found = list(self._models.list_models(request=self._own, **retrying()))
        found.sort(key=lambda model: model.create_time, reverse=True)
        return {model.name.rpartition("/")[2]: model for model in found}

    def _served(self) -> str | None:
        """Return the id of the model with the traffic."""
        with errors_in_one_line("read the endpoint"):
            name = self._find()
            if name is None:
                return None
            endpoint = self._endpoints.get_endpoint(name=name, **retrying())
        models = {each.id: _model_of(each) for each in endpoint.deployed_models}
        return next((models[each] for each in models if endpoint.traffic_split.get(each)), None)

    def _find(self) -> str | None:
        found = self._endpoints.list_endpoints(request=self._own, **retrying())
        oldest = min(found, key=lambda endpoint: endpoint.create_time, default=None)
        return str(oldest.name) if oldest else None

    def _create(self) -> str:
        # The same id in each attempt, so that a retry creates no second endpoint.
        endpoint_id = f"amazon-reviews-{_digest(self.name)}"
        parent = self._settings.parent
        endpoint = vertex_types.Endpoint(display_name=self.name, labels=_LABELS)
        request = {"parent": parent, "endpoint": endpoint, "endpoint_id": endpoint_id}
        with contextlib.suppress(exceptions.AlreadyExists):
            self._run(self._endpoints, "create_endpoint", request)
        return f"{parent}/endpoints/{endpoint_id}"

    def _deploy(self, endpoint: str, model_id: str) -> None:
        machine = vertex_types.MachineSpec(machine_type=self._settings.machine_type)
        # Without a traffic split: `serve` moves the traffic when the model is deployed.
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
        """Start a google.longrunning.Operation and wait for its end, up to some minutes."""
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
            time.sleep(self._settings.poll_seconds)
            operation = client.get_operation(request={"name": operation.name}, **retrying())
        if operation.error.code:
            raise exceptions.from_grpc_status(operation.error.code, operation.error.message)

    def _wait_for_earlier(self, client: Any, resource: str) -> None:
        """Wait for every operation on `resource`: a killed push leaves its operations running."""
        try:
            found = client.list_operations(request={"name": resource}, **retrying()).operations
        except exceptions.NotFound:
            return
        for operation in found:
            if operation.done:
                continue
            logging.info("Waiting for %s", operation.name)
            try:
                self._wait_for(client, operation)
            except exceptions.GoogleAPICallError as error:
                # This attempt repeats the failed operation.
                logging.warning("%s failed: %s", operation.name, error)


def _model_of(deployed: vertex_types.DeployedModel) -> str:
    """Return the id of a deployed model.

    It is the last part of the resource name. Vertex AI returns the number of the project in the
    name, and not the id that requests have.
    """
    return str(deployed.model.rpartition("/")[2].partition("@")[0])


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
