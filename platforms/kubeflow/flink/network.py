"""The NetworkPolicies of a Flink cluster, which executes what anybody sends it."""

from __future__ import annotations

from typing import Any

from core.flink.names import ARTIFACT_PORT
from pipeline.config import PipelineConfig
from platforms.kubeflow.flink.cluster import INTERNAL_PORTS
from platforms.kubeflow.flink.pods import (
    FLINK,
    JOB_PORT,
    JOB_SERVER,
    REST_PORT,
    job_server,
    labels,
    selector,
)
from platforms.kubeflow.objects import ingress_rule, network_policy

_STEPS = {"podSelector": {"matchLabels": {"pipelines.kubeflow.org/v2_component": "true"}}}
"""The pods of the steps of pipelines in the same namespace."""
_OPERATOR = {
    "namespaceSelector": {},
    "podSelector": {"matchLabels": {"app.kubernetes.io/name": "flink-kubernetes-operator"}},
}
"""The pod of the operator in any namespace; the operator polls the REST API."""


def flink_policy(config: PipelineConfig) -> dict[str, Any]:
    """Return the policy of the pods of Flink.

    No rule opens the port of the Python workers: connections inside a pod need none.
    """
    flink = {"podSelector": selector(config, FLINK)}
    server = {"podSelector": selector(config, JOB_SERVER)}
    return network_policy(
        config.beam.flink.kubernetes.name,
        config.kubeflow.namespace,
        labels(config, FLINK),
        flink["podSelector"],
        [
            ingress_rule([flink], list(INTERNAL_PORTS.values())),
            ingress_rule([server, _STEPS, _OPERATOR], [REST_PORT]),
        ],
    )


def job_server_policy(config: PipelineConfig) -> dict[str, Any]:
    """Return the policy of the pod of the job server."""
    return network_policy(
        job_server(config),
        config.kubeflow.namespace,
        labels(config, JOB_SERVER),
        selector(config, JOB_SERVER),
        [ingress_rule([_STEPS], [JOB_PORT, ARTIFACT_PORT])],
    )
