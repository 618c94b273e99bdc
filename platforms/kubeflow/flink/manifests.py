"""The file of all objects of a Flink cluster, and the settings of a pipeline that uses it."""

from __future__ import annotations

from pipeline.config import PipelineConfig
from platforms.kubeflow.flink.cluster import flink_deployment
from platforms.kubeflow.flink.job_server import deployment, service
from platforms.kubeflow.flink.network import flink_policy, job_server_policy
from platforms.kubeflow.flink.pods import JOB_PORT, REST_PORT, job_server, rest_service
from platforms.kubeflow.objects import to_yaml

_HEADER = """\
# A Flink cluster for `beam.runner: flink`, which requires the Flink Kubernetes Operator.
# `amazon-reviews flink` wrote this file.
#
# The settings of a pipeline that uses the cluster:
#
"""


def render(config: PipelineConfig) -> str:
    """Return the objects as YAML, for `kubectl apply -f`, below a comment with the settings.

    Raises:
      ConfigError: see `flink_deployment`.
    """
    objects = [
        flink_deployment(config),
        deployment(config),
        service(config),
        flink_policy(config),
        job_server_policy(config),
    ]
    settings = "".join(f"#   {line}\n" for line in pipeline_settings(config))
    return f"{_HEADER}{settings}\n{to_yaml(objects)}"


def pipeline_settings(config: PipelineConfig) -> list[str]:
    """Return the settings of a pipeline that uses the cluster, as `KEY=VALUE`."""
    kubernetes, namespace = config.beam.flink.kubernetes, config.kubeflow.namespace
    values = {
        "runner": "flink",
        "flink.master": f"{rest_service(config)}.{namespace}:{REST_PORT}",
        "flink.job_endpoint": f"{job_server(config)}.{namespace}:{JOB_PORT}",
        "flink.environment": "EXTERNAL",
        "flink.parallelism": kubernetes.task_managers * kubernetes.slots,
    }
    return [f"beam.{key}={value}" for key, value in values.items()]
