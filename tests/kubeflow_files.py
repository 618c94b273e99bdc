"""The objects in the files of the folder `kubeflow`."""

import copy

import yaml

from tests.checkout import CHECKOUT


def objects(name):
    """Return the objects of a file, which share no part."""
    text = (CHECKOUT / "kubeflow" / name).read_text(encoding="utf-8")
    return copy.deepcopy(list(yaml.safe_load_all(text)))


def training_runtime():
    """Return the ClusterTrainingRuntime of `training.yaml`."""
    return objects("training.yaml")[0]
