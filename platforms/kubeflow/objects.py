"""What the files of Kubernetes objects share: their YAML, and the form of a NetworkPolicy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import yaml


def to_yaml(objects: Sequence[Mapping[str, Any]]) -> str:
    """Return the objects as YAML documents, for `kubectl apply -f`."""
    return "---\n".join(yaml.dump(each, Dumper=_NoAliases, sort_keys=False) for each in objects)


def network_policy(
    name: str,
    namespace: str,
    labels: Mapping[str, str],
    pods: Mapping[str, Any],
    ingress: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """Return the policy by which pods accept only the connections of some rules.

    Args:
      name: name of the policy.
      namespace: namespace of the policy and the pods.
      labels: labels of the policy.
      pods: selector of the pods.
      ingress: the rules; see `ingress_rule`.
    """
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": name, "namespace": namespace, "labels": dict(labels)},
        "spec": {"podSelector": pods, "policyTypes": ["Ingress"], "ingress": list(ingress)},
    }


def ingress_rule(sources: Sequence[Mapping[str, Any]], ports: Sequence[int]) -> dict[str, Any]:
    """Return the rule that permits TCP connections from some sources to some ports."""
    return {
        "from": list(sources),
        "ports": [{"protocol": "TCP", "port": port} for port in ports],
    }


class _NoAliases(yaml.SafeDumper):
    """A dumper that writes equal parts twice, because a person reads the output."""

    def ignore_aliases(self, data: Any) -> bool:
        return True
