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

from components.pusher import BlessedExecutor
from components.saved_models import identity
from core.errors import InputError
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
                push = _Push(settings, _model_id(settings, uri))
                if not push.is_uploaded():
                    model = self.GetModelPath(input_dict)
                    content = hashlib.sha256(identity(model)).hexdigest()[:16]
                    _check_not_rolled_back(settings, content)
                    io_utils.copy_dir(model, os.path.join(uri, _VERSION))
                    push.upload(uri, {_CONTENT: content})
                return push.replace(), push.model_id
            except RuntimeError as error:
                if attempt == ATTEMPTS:
                    raise
                logging.warning("%s; retrying", error)
                time.sleep(settings.poll_seconds)
        raise AssertionError


class VertexPusher(Pusher):
    """Deploys a model that has both blessings to an endpoint."""

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


def pushed_models(settings: EndpointSettings) -> list[tuple[str, float, str]]:
    """Return the id, the time in seconds since 1970 and the state of the models, newest first.

    Raises:
      InputError, RuntimeError: as in `Executor.push`; or no model was pushed.
    """
    models = _models(settings)
    if not models:
        raise InputError(f"vertex.project: no pushed model of the endpoint {settings.name}")
    served = _served_id(settings)
    return [
        (
            model_id,
            model.create_time.timestamp(),
            "served" if model_id == served else "rolled back" * (_ROLLED_BACK in model.labels),
        )
        for model_id, model in models.items()
    ]


def roll_back(settings: EndpointSettings, model_id: str | None) -> str:
    """Serve an earlier model again; return its id.

    Args:
      settings: the endpoint.
      model_id: the model; None: the one that was pushed before the served one.

    Raises:
      InputError, RuntimeError: as in `Executor.push`; or there is no such model, or it is served.
    """
    models = _models(settings)
    served = _served_id(settings)
    ids = list(models)
    earlier = ids[ids.index(served) + 1 :] if served in ids else []
    chosen = model_id or (earlier[0] if earlier else None)
    if chosen is None or chosen == served or chosen not in models:
        raise InputError(
            f"no earlier model {model_id or ''} of the endpoint {settings.name}; "
            "`amazon-reviews models` lists the models"
        )
    _Push(settings, chosen).replace()
    client = vertex_api.connect(ModelServiceClient, settings.region)
    for each, labels in ((chosen, {}), (served, {_ROLLED_BACK: "true"})):
        if each in models:
            model = models[each]
            kept = {key: value for key, value in model.labels.items() if key != _ROLLED_BACK}
            model.labels = {**kept, **labels}
            with errors_in_one_line("label the model"):
                client.update_model(
                    model=model, update_mask=FieldMask(paths=["labels"]), **retrying()
                )
    return chosen


def _models(settings: EndpointSettings) -> dict[str, vertex_types.Model]:
    """Return id -> model of the pushed models, the newest first."""
    client = vertex_api.connect(ModelServiceClient, settings.region)
    request = {"parent": settings.parent, "filter": f'display_name="{settings.name}"'}
    with errors_in_one_line("list the models"):
        found = list(client.list_models(request=request, **retrying()))
    found.sort(key=lambda model: model.create_time, reverse=True)
    return {model.name.rpartition("/")[2]: model for model in found}


def _served_id(settings: EndpointSettings) -> str | None:
    """Return the id of the model with the traffic of the endpoint."""
    client = vertex_api.connect(EndpointServiceClient, settings.region)
    with errors_in_one_line("read the endpoint"):
        name = _find_endpoint(client, settings)
        if name is None:
            return None
        endpoint = client.get_endpoint(name=name, **retrying())
    for deployed in endpoint.deployed_models:
        if endpoint.traffic_split.get(deployed.id):
            return _deployed_model(deployed)
    return None


def _find_endpoint(client: EndpointServiceClient, settings: EndpointSettings) -> str | None:
    request = {"parent": settings.parent, "filter": f'display_name="{settings.name}"'}
    found = client.list_endpoints(request=request, **retrying())
    oldest = min(found, key=lambda endpoint: endpoint.create_time, default=None)
    return str(oldest.name) if oldest else None


def _deployed_model(deployed: vertex_types.DeployedModel) -> str:
    """Return the id of a deployed model.

    It is the last part of the resource name. Vertex AI returns the number of the project in the
    name, and not the id that requests have.
    """
    return str(deployed.model.rpartition("/")[2].partition("@")[0])


def _check_not_rolled_back(settings: EndpointSettings, content: str) -> None:
    for model_id, model in _models(settings).items():
        if model.labels.get(_CONTENT) == content and _ROLLED_BACK in model.labels:
            raise InputError(
                f"the model is {model_id} of the endpoint {settings.name}, which was rolled back, "
                f"so it is not pushed again; `amazon-reviews rollback {model_id}` serves it again"
            )


def _model_id(settings: EndpointSettings, uri: str) -> str:
    """Return the same id in every attempt of a push, of at most 63 characters."""
    return f"{settings.name[:46]}-{_digest(uri)}"


class _Push:
    """The upload and the deployment of one model.

    Args:
      settings: the endpoint.
      model_id: the last part of the model's resource name.
    """

    def __init__(self, settings: EndpointSettings, model_id: str):
        self._settings = settings
        self._models = vertex_api.connect(ModelServiceClient, settings.region)
        self._endpoints = vertex_api.connect(EndpointServiceClient, settings.region)
        self.model_id = model_id
        self._model = f"{settings.parent}/models/{self.model_id}"

    def is_uploaded(self) -> bool:
        """Return whether the model exists, after the end of an earlier attempt's upload."""
        with errors_in_one_line("look for the model"):
            self._wait_for_earlier(self._models, self._model)
            try:
                self._models.get_model(name=self._model, **retrying())
            except exceptions.NotFound:
                return False
        return True

    def upload(self, artifact_uri: str, labels: dict[str, str]) -> None:
        """Upload the model with its serving container; return when the upload has ended.

        Args:
          artifact_uri: folder that contains the model in a subfolder whose name is a number.
          labels: the labels of the model, besides those of all models.
        """
        name = self._settings.name
        container = vertex_types.ModelContainerSpec(
            image_uri=self._settings.image,
            command=["/usr/bin/tensorflow_model_server"],
            args=[
                f"--port={_GRPC_PORT}",
                f"--rest_api_port={_REST_PORT}",
                f"--model_name={name}",
                # Vertex AI replaces the variable by the folder with its copy of the model.
                "--model_base_path=$(AIP_STORAGE_URI)",
                f"--file_system_poll_wait_seconds={_SERVER_POLL_SECONDS}",
            ],
            ports=[vertex_types.Port(container_port=_REST_PORT)],
            predict_route=f"/v1/models/{name}:predict",
            health_route=f"/v1/models/{name}",
        )
        model = vertex_types.Model(
            display_name=name,
            artifact_uri=artifact_uri,
            container_spec=container,
            labels={**_LABELS, **labels},
        )
        request = {"parent": self._settings.parent, "model": model, "model_id": self.model_id}
        with errors_in_one_line("upload the model"):
            self._run(self._models, "upload_model", request)

    def replace(self) -> str:
        """Deploy the model, move all traffic to it, undeploy all other models.

        Returns:
          The resource name of the endpoint.
        """
        with errors_in_one_line("find or create the endpoint"):
            name = _find_endpoint(self._endpoints, self._settings) or self._create()
            self._wait_for_earlier(self._endpoints, name)
            endpoint = self._endpoints.get_endpoint(name=name, **retrying())
        if self._deployed_id(endpoint) is None:
            with errors_in_one_line("deploy the model"):
                self._deploy(name)
                endpoint = self._endpoints.get_endpoint(name=name, **retrying())
        deployed = self._deployed_id(endpoint)
        if deployed is None:
            raise ApiError(f"{name}: the model {self.model_id} disappeared after its deployment")
        if dict(endpoint.traffic_split) != {deployed: 100}:
            logging.info("Moving the traffic of %s to %s", name, self.model_id)
            moved = vertex_types.Endpoint(name=name, traffic_split={deployed: 100})
            mask = FieldMask(paths=["traffic_split"])
            with errors_in_one_line("move the traffic"):
                self._endpoints.update_endpoint(endpoint=moved, update_mask=mask, **retrying())
        for other in endpoint.deployed_models:
            if other.id != deployed:
                request = {"endpoint": name, "deployed_model_id": other.id}
                with errors_in_one_line("undeploy the previous model"):
                    self._run(self._endpoints, "undeploy_model", request)
        return name

    def _create(self) -> str:
        settings = self._settings
        # The same id in each attempt, so that a retry creates no second endpoint.
        endpoint_id = f"amazon-reviews-{_digest(settings.name)}"
        request = {
            "parent": settings.parent,
            "endpoint": vertex_types.Endpoint(display_name=settings.name, labels=_LABELS),
            "endpoint_id": endpoint_id,
        }
        with contextlib.suppress(exceptions.AlreadyExists):
            self._run(self._endpoints, "create_endpoint", request)
        return f"{settings.parent}/endpoints/{endpoint_id}"

    def _deploy(self, endpoint: str) -> None:
        machine = vertex_types.MachineSpec(machine_type=self._settings.machine_type)
        # Without a traffic split: `replace` moves the traffic when the model is deployed.
        deployed = vertex_types.DeployedModel(
            model=self._model,
            display_name=self._settings.name,
            dedicated_resources=vertex_types.DedicatedResources(
                machine_spec=machine, min_replica_count=1, max_replica_count=1
            ),
        )
        request = {"endpoint": endpoint, "deployed_model": deployed}
        self._run(self._endpoints, "deploy_model", request)

    def _deployed_id(self, endpoint: vertex_types.Endpoint) -> str | None:
        """Return the id under which the model is deployed."""
        for deployed in endpoint.deployed_models:
            if _deployed_model(deployed) == self.model_id:
                return str(deployed.id)
        return None

    def _run(self, client: Any, method: str, request: dict[str, Any]) -> None:
        """Start a google.longrunning.Operation and wait for its end, up to some minutes."""
        logging.info("%s %s on Vertex AI", method, self.model_id)
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


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
