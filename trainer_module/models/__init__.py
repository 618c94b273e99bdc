"""The architectures, one file each: FEATURES it reads, and build(training, transform)."""

from __future__ import annotations

import importlib
from types import ModuleType


def load(name: str) -> ModuleType:
    """The module of the model called `name` in `training.model`."""
    return importlib.import_module(f"{__name__}.{name}")
