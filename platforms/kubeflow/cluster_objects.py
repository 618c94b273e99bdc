"""The objects that an administrator applies once: a ClusterTrainingRuntime and a NetworkPolicy."""

from __future__ import annotations

from typing import Any

from pipeline.cluster_settings import RUNTIME
from pipeline.config import PipelineConfig
from platforms.jobs.kubernetes.pod_template import LABELS, PORT
from platforms.jobs.trainjob.runtime import make_runtime
from platforms.kubeflow.objects import ingress_rule, network_policy, to_yaml

_SELECTOR = {
    "matchLabels": {
        key: LABELS[key] for key in ("app.kubernetes.io/name", "app.kubernetes.io/component")
    }
}


def render(config: PipelineConfig) -> str:
    """Return the objects as YAML, for `kubectl apply -f`."""
    runtime = make_runtime(RUNTIME, config.cluster.image)
    return to_yaml([runtime, training_policy(config.kubeflow.namespace)])


def training_policy(namespace: str) -> dict[str, Any]:
    """Return the policy by which training pods accept connections only from each other.

    The servers of TensorFlow execute what anybody sends them, without authentication.

    Args:
      namespace: the namespace of the training pods.
    """
    return network_policy(
        "amazon-reviews-training",
        namespace,
        LABELS,
        _SELECTOR,
        [ingress_rule([{"podSelector": _SELECTOR}], [PORT])],
    )
