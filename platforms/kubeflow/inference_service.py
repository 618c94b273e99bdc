"""The KServe InferenceService (serving.kserve.io/v1beta1) that serves the pushed models.

The server is TensorFlow Serving. A review is asked about through the signature `predict_text`:

    curl -d '{"signature_name": "predict_text", "instances": ["great phone"]}' \
        http://HOST/v1/models/NAME:predict

answers `{"predictions": [{"probability": 0.98, "label": 1}]}`; NAME is `name` of the settings, with
dashes for underscores.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Any

import yaml

from core.errors import ConfigError
from pipeline.config import PipelineConfig
from platforms.checks import cluster_name
from platforms.kubeflow.checks import on_volume

RUNTIME_VERSION = "2.21.0"
"""Of TensorFlow Serving, whose KServe default knows nothing of today's operations. It is to be no
older than the TensorFlow of either stack: a server loads what its own version or an earlier one
saved, and a model that is served may come from the image or from any machine that pushes."""

_RESOURCES = {"cpu": "1", "memory": "2Gi"}
_USER = 1000
"""A server needs no rights, and the image of TensorFlow Serving names no user but root."""
_LABELS = {
    "app.kubernetes.io/name": "amazon-reviews",
    "app.kubernetes.io/component": "serving",
    "app.kubernetes.io/managed-by": "amazon-reviews",
}


def inference_service(config: PipelineConfig) -> dict[str, Any]:
    """The manifest; TensorFlow Serving takes the newest of the versions that the Pusher left.

    Raises:
      ConfigError: nothing is pushed to a place that the pods of the cluster see, or `name` is
        none that a service can have.
    """
    name = cluster_name(config)
    # KServe adds -predictor, and the whole is one DNS label.
    if not re.fullmatch("[a-z]([a-z0-9-]{0,51}[a-z0-9])?", name):
        raise ConfigError(
            f"name: {config.name} does not fit an InferenceService; at most 53 of a-z, 0-9, -, "
            "the last no dash"
        )
    kubeflow = config.kubeflow
    predictor: dict[str, Any] = {
        # None at all would save a pod, and make the first question wait for TensorFlow to start.
        "minReplicas": 1,
        "model": {
            "modelFormat": {"name": "tensorflow"},
            "runtimeVersion": RUNTIME_VERSION,
            "storageUri": _storage_uri(config),
            "resources": {"requests": dict(_RESOURCES), "limits": dict(_RESOURCES)},
            # KServe gives its init container, which copies the model, the same one.
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": _USER,
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
                "seccompProfile": {"type": "RuntimeDefault"},
            },
        },
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
    }
    if kubeflow.service_account:
        predictor["serviceAccountName"] = kubeflow.service_account
    return {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": name, "namespace": kubeflow.namespace, "labels": dict(_LABELS)},
        "spec": {"predictor": predictor},
    }


def render(config: PipelineConfig) -> str:
    """The manifest as YAML, for `kubectl apply -f`; raises as `inference_service` does."""
    return yaml.safe_dump(inference_service(config), sort_keys=False)


def _storage_uri(config: PipelineConfig) -> str:
    destination, place = config.push.destination, config.paths.serving
    if destination != "filesystem":
        raise ConfigError(
            f"push.destination: {destination} leaves KServe no model to serve; set filesystem"
        )
    if "://" in place:
        return place
    volume = config.kubeflow.volume
    if volume is None or not on_volume(config, place):
        raise ConfigError(
            f"paths.serving: {place} is not seen by the pods of KServe; set gs://BUCKET/FOLDER, "
            "or a path under kubeflow.volume.mount"
        )
    return f"pvc://{volume.claim}/{PurePosixPath(place).relative_to(volume.mount)}".removesuffix(
        "/."
    )
