"""What a target needs of the settings, told before anything is compiled; imports no TFX."""

from __future__ import annotations

import re
from typing import Literal

from pipeline.config import PipelineConfig
from pipeline.settings_file import ConfigError
from trainer_module import combinations

Target = Literal["local", "vertex", "kubeflow"]
ClusterTarget = Literal["vertex", "kubeflow"]
"""Those that a pipeline is compiled for."""


def check_target(config: PipelineConfig, target: Target) -> None:
    """Checks `config` against what `target` can do.

    Raises:
      ConfigError: a setting is missing or impossible there; the line names its key.
    """
    if config.data.splits and not config.data.input_base:
        raise _missing("data.input_base", "data.splits", "the folder that the globs are in")
    if target == "local":
        _check_local(config)
        return
    if not config.cluster.image:
        raise _missing("cluster.image", target, "HOST/PROJECT/amazon-reviews:TAG")
    _check_training(config)
    if target == "vertex":
        _check_vertex(config)
    else:
        _check_kubeflow(config)
    if not re.fullmatch("[a-z0-9][a-z0-9-]{0,127}", cluster_name(config)):
        raise ConfigError(f"name: {config.name} does not fit {target}; at most 128 of a-z, 0-9, -")


def cluster_name(config: PipelineConfig) -> str:
    """The pipeline's name where underscores are not allowed."""
    return config.name.replace("_", "-")


def on_volume(config: PipelineConfig, path: str) -> bool:
    """Whether a path lies on the volume that all steps on Kubeflow mount."""
    volume = config.kubeflow.volume
    return volume is not None and (path + "/").startswith(volume.mount.rstrip("/") + "/")


def _check_local(config: PipelineConfig) -> None:
    if config.push.destination == "vertex":
        raise ConfigError("push.destination: vertex is for --target vertex; set filesystem or none")
    _check_baseline(config, "local")
    _check_dataflow(config)


def _check_training(config: PipelineConfig) -> None:
    """What contradicts the GPUs that each training process is given."""
    training = config.training
    trainer = config.cluster.resources.get("Trainer")
    gpus = trainer.gpus if trainer else 0
    of_gpus = f"cluster.resources.Trainer.gpus is {gpus}"
    found = combinations.too_few_gpus(training, gpus)
    if found is None and training.strategy == "auto":
        name = combinations.of_one_process(training, gpus)
        found = combinations.problem(training, name, f"auto: {of_gpus}")
    if found:
        raise ConfigError(found if of_gpus in found else f"{found} ({of_gpus})")


def _check_vertex(config: PipelineConfig) -> None:
    for key, value in (
        ("vertex.project", config.vertex.project),
        ("vertex.region", config.vertex.region),
    ):
        if not value:
            raise _missing(key, "vertex", "that of Google Cloud where the pipeline is to run")
    if config.data.input_base is None:
        raise _missing("data.input_base", "vertex", "gs://BUCKET/FOLDER with the reviews")
    for key, path in _places(config).items():
        if not path.startswith("gs://"):
            raise ConfigError(f"{key}: {path} is not seen by Vertex AI; set gs://BUCKET/FOLDER")
    for name, resources in config.cluster.resources.items():
        gpu_type = resources.gpu_type
        if gpu_type and not re.fullmatch("[A-Z][A-Z0-9_]+", gpu_type):
            raise ConfigError(
                f"cluster.resources.{name}.gpu_type: {gpu_type} is no accelerator of Vertex AI; "
                "set for example NVIDIA_TESLA_T4"
            )
    if config.push.destination == "vertex":
        _check_serving_image(config.vertex.serving_image)
    _check_baseline(config, "vertex")
    _check_dataflow(config)


def _check_serving_image(image: str | None) -> None:
    right = "TensorFlow Serving no older than the TensorFlow that trains, see docs/vertex.md"
    if not image:
        raise _missing("vertex.serving_image", "push.destination: vertex", right)
    if re.search(r"/prediction/tf2?-", image):
        raise ConfigError(
            f"vertex.serving_image: {image} is a prebuilt prediction container; the newest has "
            f"TensorFlow 2.15 and cannot load the model. Set {right}"
        )


def _check_kubeflow(config: PipelineConfig) -> None:
    if not config.paths.root.startswith("gs://"):
        # Kubeflow's launcher takes buckets alone for a pipeline's root, TensorFlow gs:// of them.
        raise ConfigError(f"paths.root: {config.paths.root} is no bucket; set gs://BUCKET/FOLDER")
    for key, path in _places(config).items():
        if "://" not in path and not on_volume(config, path):
            raise ConfigError(
                f"{key}: {path} is not seen by the pods of Kubeflow; set gs://BUCKET/FOLDER, or a "
                "path under kubeflow.volume.mount"
            )
    if config.push.destination == "vertex":
        raise ConfigError(
            "push.destination: vertex is for --target vertex; set filesystem, and serve with KServe"
        )
    _check_dataflow(config)


def _places(config: PipelineConfig) -> dict[str, str]:
    """Key -> path, of all that the steps read and write."""
    places = {
        "paths.root": config.paths.root,
        "paths.checkpoints": config.paths.checkpoints,
        "data.input_base": config.data.input_base,
        "paths.serving": config.paths.serving if config.push.destination == "filesystem" else None,
        "evaluation.baseline_model": config.evaluation.baseline_model,
    }
    return {key: path for key, path in places.items() if path}


def _check_baseline(config: PipelineConfig, target: Target) -> None:
    if config.evaluation.baseline_model:
        raise ConfigError(
            "evaluation.baseline_model is for --target kubeflow; "
            f"{target} finds the latest blessed model itself, leave it out"
        )


def _check_dataflow(config: PipelineConfig) -> None:
    if config.beam.runner != "dataflow":
        return
    for key in ("project", "region"):
        if not (getattr(config.beam.dataflow, key) or getattr(config.vertex, key)):
            raise _missing(f"beam.dataflow.{key}", "beam.runner: dataflow", "that of your jobs")
    for key, path in {**_places(config), "data.input_base": config.data.input_base}.items():
        if not (path or "").startswith("gs://"):
            raise ConfigError(
                f"{key}: {path} is not seen by Dataflow's workers; set gs://BUCKET/FOLDER"
            )


def _missing(key: str, target: str, right: str) -> ConfigError:
    return ConfigError(f"{key}: not set, and {target} needs it; set {right}")
