"""Checks of the settings against what Vertex AI supports; this module imports no TFX."""

from __future__ import annotations

import re

from core.errors import ConfigError
from pipeline.config import PipelineConfig
from platforms import flink
from platforms.checks import check_compiled, check_dataflow, missing, places


def check(config: PipelineConfig) -> None:
    """Check the settings of a pipeline for Vertex AI.

    Raises:
      ConfigError: a setting is missing or impossible there. The message names its key.
    """
    check_compiled(config, "vertex")
    flink.check_compiled(config)
    for key, value in (
        ("vertex.project", config.vertex.project),
        ("vertex.region", config.vertex.region),
    ):
        if not value:
            raise missing(key, "vertex", f"the Google Cloud {key.removeprefix('vertex.')} of runs")
    if config.data.input_base is None:
        raise missing("data.input_base", "vertex", "gs://BUCKET/FOLDER with the reviews")
    for key, path in places(config).items():
        if not path.startswith("gs://"):
            raise ConfigError(
                f"{key}: {path} is not accessible from Vertex AI; set gs://BUCKET/FOLDER"
            )
    for key, file in config.signing.model_dump(exclude_none=True).items():
        raise ConfigError(f"signing.{key}: {file} is not accessible from Vertex AI; unset it")
    for name, resources in config.cluster.resources.items():
        gpu_type = resources.gpu_type
        if gpu_type and not re.fullmatch("[A-Z][A-Z0-9_]+", gpu_type):
            raise ConfigError(
                f"cluster.resources.{name}.gpu_type: {gpu_type} is not an accelerator of Vertex "
                "AI; set one, such as NVIDIA_TESLA_T4"
            )
    if config.push.destination == "vertex":
        _check_serving_image(config.vertex.serving_image)
    check_dataflow(config)


def _check_serving_image(image: str | None) -> None:
    right = (
        "an image of TensorFlow Serving that is not older than the TensorFlow of the training, "
        "see docs/how-to/vertex.md"
    )
    if not image:
        raise missing("vertex.serving_image", "push.destination: vertex", right)
    if re.search(r"/prediction/tf2?-", image):
        raise ConfigError(
            f"vertex.serving_image: {image} is a prebuilt prediction container, and the newest one "
            f"has TensorFlow 2.15, which cannot load the model. Set {right}"
        )
