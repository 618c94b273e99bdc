"""What a training is told: the settings and the places, whoever starts it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class TrainingJob:
    """One training, independent of who starts it.

    Attributes:
      train_files, eval_files: glob patterns of transformed TFRecord files.
      transform_graph: folder of the Transform output (TFT's `TFTransformOutput`).
      serving_model_dir: where the SavedModel goes.
      model_run_dir: where TensorBoard logs go.
      training: the `training` section of the settings.
      transform: what of the `transform` section the model depends on.
    """

    train_files: list[str]
    eval_files: list[str]
    transform_graph: str
    serving_model_dir: str
    model_run_dir: str
    training: Mapping[str, Any]
    transform: Mapping[str, Any]
