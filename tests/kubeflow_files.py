"""The objects in the files of the folder `kubeflow`."""

import yaml

from tests.checkout import CHECKOUT


def objects(name):
    """Return the objects of a file."""
    text = (CHECKOUT / "kubeflow" / name).read_text(encoding="utf-8")
    return list(yaml.safe_load_all(text))


def training_runtime():
    """Return the ClusterTrainingRuntime of `training.yaml`."""
    return training_objects()[1]


def training_objects():
    """Return the NetworkPolicy and the ClusterTrainingRuntime of `training.yaml`."""
    policy, runtime = objects("training.yaml")
    assert (policy["kind"], runtime["kind"]) == ("NetworkPolicy", "ClusterTrainingRuntime")
    return policy, runtime
