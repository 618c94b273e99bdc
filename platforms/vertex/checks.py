"""Checks of the settings against what Vertex AI supports; this module imports no TFX."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from core.settings import hint
from core.storage import is_bucket
from pipeline.config import PipelineConfig
from pipeline.nodes import TRAINER


def problems(
    config: PipelineConfig, paths: Mapping[str, str], gpu_types: Mapping[str, str]
) -> Iterator[str]:
    """Yield the problem of each setting that Vertex AI does not support.

    Args:
      config: the settings.
      paths: setting -> path, for each path that the steps read or write.
      gpu_types: setting -> type of GPU, for each component whose settings name one.
    """
    for key, path in paths.items():
        if not is_bucket(path):
            yield f"{key}: {path} is not accessible from Vertex AI; set gs://BUCKET/FOLDER"
    trainer = config.cluster.resources.get(TRAINER)
    if trainer and config.training.has_peers:
        for key in ("cpu", "memory"):
            if getattr(trainer, key):
                yield (
                    f"cluster.resources.Trainer.{key}: has no effect, because the replicas of the "
                    "training are whole machines; remove it and set vertex.machine_type"
                )
    if not gpu_types:
        return
    # This import takes seconds.
    from google.cloud.aiplatform_v1.types import AcceleratorType

    [_, *known] = AcceleratorType.__members__  # The first one is ACCELERATOR_TYPE_UNSPECIFIED.
    for key, gpu_type in gpu_types.items():
        if gpu_type not in known:
            yield f"{key}: {gpu_type} is not an accelerator of Vertex AI, {hint(gpu_type, known)}"
