"""Checks of the settings against what each platform supports; this module imports no TFX."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from operator import attrgetter
from typing import Literal

from core.errors import ConfigError
from pipeline.config import PipelineConfig
from preprocessing.reading.globs import is_data

Target = Literal["local", "vertex", "kubeflow"]
"""The platforms, by their names in `--target`."""
ClusterTarget = Literal["vertex", "kubeflow"]
"""The platforms that run a compiled pipeline."""

PORT_FORWARD = "kubectl port-forward -n kubeflow svc/ml-pipeline-ui 8080:80"
"""The command that makes Kubeflow Pipelines reachable from this machine.

It forwards the UI, not the API (ml-pipeline, port 8888). The UI forwards API calls to the API, and
also serves the web page of a run.
"""
_SERVING_IMAGE = (
    "an image of TensorFlow Serving that is not older than the TensorFlow of the training, see "
    "docs/how-to/vertex.md"
)
_IMAGE = {"cluster.image": "HOST/PROJECT/amazon-reviews:TAG"}
_REQUIRED = {
    "local": {},
    "kubeflow": _IMAGE,
    "vertex": {
        **_IMAGE,
        "vertex.project": "the Google Cloud project of runs",
        "vertex.region": "the Google Cloud region of runs",
        "data.input_base": "gs://BUCKET/FOLDER with the reviews",
    },
}
"""Target -> settings that it requires, and what to set."""


def check_platform(config: PipelineConfig, target: Target) -> None:
    """Check the settings against what a platform supports, without Beam's Flink runner.

    Raises:
      ConfigError: a setting is missing or impossible there. The message names its key.
    """
    if config.data.splits and not config.data.input_base:
        raise missing("data.input_base", "data.splits", "the folder that contains the files")
    if target != "local":
        check_outside_input(config)
    for key, right in _REQUIRED[target].items():
        if not attrgetter(key)(config):
            raise missing(key, target, right)
    if config.push.destination == "vertex" and target != "vertex":
        raise ConfigError(
            "push.destination: vertex requires --target vertex; set filesystem, or none"
        )
    if target != "local":
        _check_cluster(config, target)
    _check_dataflow(config)


def check_outside_input(config: PipelineConfig) -> None:
    """Raise ConfigError if what a run writes would be read as reviews by the next run."""
    base = (config.data.input_base or "").rstrip("/")
    # With `data.splits` only the files that match its globs are read.
    if not base or config.data.splits:
        return
    for key in ("root", "metadata", "serving", "checkpoints"):
        place = getattr(config.paths, key)
        inside = place.removeprefix(base + "/")
        if inside != place and is_data(inside):
            raise ConfigError(
                f"paths.{key}: {place} is inside data.input_base ({base}), all files of which are "
                "read as reviews; set a folder outside of it, or name the review files in "
                "data.splits"
            )


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


def cluster_name(config: PipelineConfig) -> str:
    """Return the pipeline's name with dashes, for a cluster that allows no underscores."""
    return config.name.replace("_", "-")


def places(config: PipelineConfig) -> dict[str, str]:
    """Return setting -> path of everything that the steps read and write."""
    paths = {
        "paths.root": config.paths.root,
        "paths.checkpoints": config.paths.checkpoints,
        "data.input_base": config.data.input_base,
        "paths.serving": config.paths.serving if config.push.destination == "filesystem" else None,
    }
    return {key: path for key, path in paths.items() if path}


def _on_volume(config: PipelineConfig, path: str) -> bool:
    """Return whether a path is on the volume that all steps on Kubeflow mount."""
    volume = config.kubeflow.volume
    return volume is not None and f"{path}/".startswith(f"{volume.mount.rstrip('/')}/")


def missing(key: str, target: str, right: str) -> ConfigError:
    """Return the error of a key that `target` requires; `right` describes a correct value."""
    return ConfigError(f"{key}: not set, and {target} requires it; set {right}")


def _check_cluster(config: PipelineConfig, target: Target) -> None:
    if not re.fullmatch("[a-z0-9][a-z0-9-]{0,127}", cluster_name(config)):
        raise ConfigError(
            f"name: {config.name} is not allowed on {target}; use at most 128 characters of a-z, "
            "0-9 and -"
        )
    _check_training(config)
    if target == "kubeflow":
        _check_kubeflow(config)
    else:
        _check_vertex(config)


def _check_training(config: PipelineConfig) -> None:
    """Raise ConfigError if the training does not fit the GPUs of each training process."""
    training = config.training
    trainer = config.cluster.resources.get("Trainer")
    gpus = trainer.gpus if trainer else 0
    of_gpus = f"cluster.resources.Trainer.gpus is {gpus}"
    try:
        training.check_gpus(gpus)
        if training.strategy == "auto":
            training.check(training.of_one_process(gpus)[0], f"auto: {of_gpus}")
    except ValueError as error:
        found = str(error)
        raise ConfigError(found if of_gpus in found else f"{found} ({of_gpus})") from None


def _check_kubeflow(config: PipelineConfig) -> None:
    if not config.paths.root.startswith("gs://"):
        # Kubeflow's launcher requires a bucket as pipeline root, and TensorFlow reads gs:// ones.
        raise ConfigError(
            f"paths.root: {config.paths.root} is not a bucket; set gs://BUCKET/FOLDER"
        )
    for key, path in places(config).items():
        if "://" not in path and not _on_volume(config, path):
            raise ConfigError(
                f"{key}: {path} is not accessible from the pods of Kubeflow; set "
                "gs://BUCKET/FOLDER, or a path under kubeflow.volume.mount"
            )
    if config.kubeflow.training_pod:
        _check_pod(config.kubeflow.training_pod)


def _check_pod(fields: Iterable[str]) -> None:
    """Raise ConfigError if a field of a pod's spec does not exist: Kubernetes would ignore it."""
    # This import takes a second.
    from kubernetes.client import V1PodSpec

    known = set(V1PodSpec.attribute_map.values())
    for name in fields:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise ConfigError(f"kubeflow.training_pod.{name}: no field of a pod's spec{hint}")


def _check_vertex(config: PipelineConfig) -> None:
    for key, path in places(config).items():
        if not path.startswith("gs://"):
            raise ConfigError(
                f"{key}: {path} is not accessible from Vertex AI; set gs://BUCKET/FOLDER"
            )
    for name, resources in config.cluster.resources.items():
        gpu_type = resources.gpu_type
        if gpu_type and not re.fullmatch("[A-Z][A-Z0-9_]+", gpu_type):
            raise ConfigError(
                f"cluster.resources.{name}.gpu_type: {gpu_type} is not an accelerator of Vertex "
                "AI; set one, such as NVIDIA_TESLA_T4"
            )
    image = config.vertex.serving_image
    if config.push.destination == "vertex" and not image:
        raise missing("vertex.serving_image", "push.destination: vertex", _SERVING_IMAGE)
    if config.push.destination == "vertex" and re.search(r"/prediction/tf2?-", image or ""):
        raise ConfigError(
            f"vertex.serving_image: {image} is a prebuilt prediction container, and the newest one "
            f"has TensorFlow 2.15, which cannot load the model. Set {_SERVING_IMAGE}"
        )


def _check_dataflow(config: PipelineConfig) -> None:
    if config.beam.runner != "dataflow":
        return
    for key in ("project", "region"):
        if not getattr(config.vertex, key):
            raise missing(
                f"vertex.{key}", "beam.runner: dataflow", f"the {key} of the Dataflow jobs"
            )
    for key, path in {**places(config), "data.input_base": config.data.input_base}.items():
        if not (path or "").startswith("gs://"):
            raise ConfigError(
                f"{key}: {path} is not accessible from Dataflow's workers; set gs://BUCKET/FOLDER"
            )
