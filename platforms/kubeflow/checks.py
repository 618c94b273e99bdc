"""Checks of the settings against what Kubeflow supports; this module imports no TFX."""

from __future__ import annotations

from core.errors import ConfigError
from pipeline.config import PipelineConfig
from platforms import flink
from platforms.checks import check_compiled, check_dataflow, places

PORT_FORWARD = "kubectl port-forward -n kubeflow svc/ml-pipeline-ui 8080:80"
"""The command that makes Kubeflow Pipelines reachable from this machine.

It forwards the UI, not the API (ml-pipeline, port 8888). The UI forwards API calls to the API, and
also serves the web page of a run.
"""


def check(config: PipelineConfig) -> None:
    """Check the settings of a pipeline for Kubeflow.

    Raises:
      ConfigError: a setting is missing or impossible there. The message names its key.
    """
    check_compiled(config, "kubeflow")
    flink.check_compiled(config)
    if not config.paths.root.startswith("gs://"):
        # Kubeflow's launcher requires a bucket as pipeline root, and TensorFlow reads gs:// ones.
        raise ConfigError(
            f"paths.root: {config.paths.root} is not a bucket; set gs://BUCKET/FOLDER"
        )
    for key, path in places(config).items():
        if "://" not in path and not on_volume(config, path):
            raise ConfigError(
                f"{key}: {path} is not accessible from the pods of Kubeflow; set "
                "gs://BUCKET/FOLDER, or a path under kubeflow.volume.mount"
            )
    if config.push.destination == "vertex":
        raise ConfigError(
            "push.destination: vertex requires --target vertex; set filesystem and serve the model "
            "with KServe"
        )
    check_dataflow(config)


def on_volume(config: PipelineConfig, path: str) -> bool:
    """Return whether a path is on the volume that all steps mount."""
    volume = config.kubeflow.volume
    return volume is not None and (path + "/").startswith(volume.mount.rstrip("/") + "/")


def check_endpoint(config: PipelineConfig) -> None:
    """Raise ConfigError if `kubeflow.endpoint` is missing or not a URL."""
    endpoint = config.kubeflow.endpoint
    if not endpoint:
        raise ConfigError(
            "kubeflow.endpoint: not set; set the URL of the Kubeflow Pipelines API, "
            f"http://127.0.0.1:8080 after `{PORT_FORWARD}`"
        )
    if not endpoint.startswith(("http://", "https://")):
        raise ConfigError(
            f"kubeflow.endpoint: must be a URL with http:// or https://, not {endpoint!r}"
        )
