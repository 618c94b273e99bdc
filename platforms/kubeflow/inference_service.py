"""The KServe InferenceService (serving.kserve.io/v1beta1) that serves the pushed models.

The server is TensorFlow Serving. The signature `predict_text` classifies reviews:

    curl -d '{"signature_name": "predict_text", "instances": ["great phone"]}' \
        http://HOST/v1/models/NAME:predict

The answer is `{"predictions": [{"probability": 0.98, "label": 1}]}`. NAME is the setting `name`,
with dashes instead of underscores.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Any

import yaml

from core.errors import ConfigError
from pipeline.config import PipelineConfig
from platforms.checks import cluster_name, on_volume

RUNTIME_VERSION = "2.21.0"
"""The version of TensorFlow Serving; KServe's default one is too old for current operations.

It must not be older than the TensorFlow of either stack: a server loads only models of its own
version or an earlier one, and the image or any other machine may have pushed the model.
"""

_RESOURCES = {"cpu": "1", "memory": "2Gi"}
_USER = 1000
"""The user id of the server, which needs no privileges; its image runs as root by default."""
_LABELS = {
    "app.kubernetes.io/name": "amazon-reviews",
    "app.kubernetes.io/component": "serving",
    "app.kubernetes.io/managed-by": "amazon-reviews",
}


def inference_service(config: PipelineConfig) -> dict[str, Any]:
    """Return the manifest; TensorFlow Serving loads the newest version that the Pusher wrote.

    Raises:
      ConfigError: no model is pushed to a path that the cluster's pods can read, or `name` is not a
        valid name of a service.
    """
    name = cluster_name(config)
    # KServe appends -predictor, and the result must be one DNS label.
    if not re.fullmatch("[a-z]([a-z0-9-]{0,51}[a-z0-9])?", name):
        raise ConfigError(
            f"name: {config.name} is not a valid name of an InferenceService; use at most 53 "
            "characters of a-z, 0-9 and -, without a dash at the end"
        )
    kubeflow = config.kubeflow
    predictor: dict[str, Any] = {
        # With 0 the first request would have to wait for the start of TensorFlow Serving.
        "minReplicas": 1,
        "model": {
            "modelFormat": {"name": "tensorflow"},
            "runtimeVersion": RUNTIME_VERSION,
            "storageUri": _storage_uri(config),
            "resources": {"requests": dict(_RESOURCES), "limits": dict(_RESOURCES)},
            # KServe also applies this security context to its init container, which copies the
            # model.
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
    """Return the manifest as YAML, for `kubectl apply -f`.

    Raises:
      ConfigError: see `inference_service`.
    """
    return yaml.safe_dump(inference_service(config), sort_keys=False)


def _storage_uri(config: PipelineConfig) -> str:
    destination, place = config.push.destination, config.paths.serving
    if destination != "filesystem":
        raise ConfigError(
            f"push.destination: {destination} pushes no model that KServe can read; set filesystem"
        )
    if "://" in place:
        return place
    volume = config.kubeflow.volume
    if volume is None or not on_volume(config, place):
        raise ConfigError(
            f"paths.serving: {place} is not accessible from the pods of KServe; set "
            "gs://BUCKET/FOLDER, or a path under kubeflow.volume.mount"
        )
    return f"pvc://{volume.claim}/{PurePosixPath(place).relative_to(volume.mount)}".removesuffix(
        "/."
    )
