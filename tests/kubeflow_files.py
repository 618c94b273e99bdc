"""The objects in the files of the folder `kubeflow`."""

import copy
from typing import Any

import yaml

from tests.checkout import CHECKOUT


def objects(name: str) -> list[dict[str, Any]]:
    """Return the objects of a file, which share no part."""
    text = (CHECKOUT / "kubeflow" / name).read_text(encoding="utf-8")
    return copy.deepcopy(list(yaml.safe_load_all(text)))


def training_runtime() -> dict[str, Any]:
    """Return the ClusterTrainingRuntime of `training.yaml`."""
    return objects("training.yaml")[0]
