"""The objects that an administrator applies once: a ClusterTrainingRuntime and a NetworkPolicy."""

from __future__ import annotations

from typing import Any

import yaml

from pipeline.config import PipelineConfig
from platforms.jobs.kubernetes.pod_template import LABELS, PORT
from platforms.jobs.trainjob.runtime import make_runtime

_SELECTOR = {
    "matchLabels": {
        key: LABELS[key] for key in ("app.kubernetes.io/name", "app.kubernetes.io/component")
    }
}


def render(config: PipelineConfig) -> str:
    """Return the objects as YAML, for `kubectl apply -f`."""
    runtime = make_runtime(config.kubeflow.training_runtime, config.cluster.image)
    objects = [runtime, network_policy(config.kubeflow.namespace)]
    return "---\n".join(yaml.dump(each, Dumper=_NoAliases, sort_keys=False) for each in objects)


def network_policy(namespace: str) -> dict[str, Any]:
    """Return the policy by which training pods accept connections only from each other.

    The servers of TensorFlow execute what anybody sends them, without authentication.

    Args:
      namespace: the namespace of the training pods.
    """
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {
            "name": "amazon-reviews-training",
            "namespace": namespace,
            "labels": LABELS,
        },
        "spec": {
            "podSelector": _SELECTOR,
            "policyTypes": ["Ingress"],
            "ingress": [
                {
                    "from": [{"podSelector": _SELECTOR}],
                    "ports": [{"protocol": "TCP", "port": PORT}],
                }
            ],
        },
    }


class _NoAliases(yaml.SafeDumper):
    """A dumper that writes equal parts twice, because a person reads the output."""

    def ignore_aliases(self, data: Any) -> bool:
        return True
