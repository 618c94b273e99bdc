"""The architectures, one file each; a new one is a new file here and its name in the settings.

A file has
  Hyperparameters: what `training.hyperparameters` may set.
  FEATURES: which of the transformed features it reads.
  LEARNING_RATE: its own, at a global batch of 1024.
  SEARCH_SPACE: what the Tuner tries.
  build(hyperparameters, transform, static_shapes): the tf_keras.Model, which answers with logits.
  optimizer(learning_rate): the optimizer that it is trained with.
  adapt(model, dataset, sum_over_processes), if something is fitted on the train split other than
    by gradients.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from pydantic import ValidationError

from core.settings import first_problem


def load(name: str) -> ModuleType:
    """The module of the model called `name` in `training.model`."""
    return importlib.import_module(f"{__name__}.{name}")


def hyperparameters(name: str, values: Mapping[str, Any]) -> Any:
    """`training.hyperparameters` as the model's own Hyperparameters.

    Raises:
      ValueError: a name that the model does not know, or a wrong value; one line.
    """
    known = load(name).Hyperparameters
    try:
        return known.model_validate(dict(values))
    except ValidationError as error:
        told = first_problem(error, known, "training.hyperparameters")
        raise ValueError(f"{told} (training.model is {name})") from None
