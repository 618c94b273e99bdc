"""Checks of the settings against what Kubeflow supports; this module imports no TFX."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from core.settings import hint
from core.storage import is_bucket
from pipeline.config import PipelineConfig
from platforms.training_jobs.manifests import NODE, SCRATCH, TENSORFLOW, VOLUME

_RESOURCE_NAME = re.compile(
    r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"
)
"""The name of a resource other than CPU and memory in Kubernetes: DOMAIN/NAME."""
_SINGLE_VALUES: dict[str, tuple[str, type]] = {
    "str": ("string in quotation marks", str),
    "int": ("whole number", int),
    "bool": ("boolean, true or false", bool),
}
"""Type in the models of Kubernetes's Python client -> its description, and its type in Python."""
TRAINJOB_FIELDS = (
    *("affinity", "containers", "imagePullSecrets", "initContainers", "nodeSelector"),
    *("schedulingGates", "securityContext", "serviceAccountName", "terminationGracePeriodSeconds"),
    *("tolerations", "volumes"),
)
"""The fields of a pod that a TrainJob of Kubeflow Trainer can replace in its runtime."""
_QUANTITIES = ("divisor", "limits", "overhead", "requests", "sizeLimit")
"""The fields of a pod that contain quantities, which the models describe as strings."""


def problems(
    config: PipelineConfig, paths: Mapping[str, str], gpu_types: Mapping[str, str]
) -> Iterator[str]:
    """Yield the problem of each setting that Kubeflow does not support.

    Args:
      config: the settings.
      paths: setting -> path, for each path that the steps read or write.
      gpu_types: setting -> type of GPU, for each component whose settings name one.
    """
    volume = config.kubeflow.volume
    if not is_bucket(config.paths.root):
        # Kubeflow's launcher requires a bucket as pipeline root, and TensorFlow reads gs:// ones.
        yield (
            f"paths.root: {config.paths.root} is not in a bucket of Google Cloud Storage; set "
            "gs://BUCKET/FOLDER"
        )
    mount = f"{volume.mount.rstrip('/')}/" if volume else "no volume"
    for key, path in paths.items():
        # Neither TensorFlow nor Beam in the image reads other URLs, such as s3://. With file:// a
        # step would write into its pod, whose files are lost.
        if not is_bucket(path) and not f"{path}/".startswith(mount):
            yield (
                f"{key}: {path} is not accessible from the pods of Kubeflow; set "
                "gs://BUCKET/FOLDER, or a path under kubeflow.volume.mount"
            )
    for key, gpu_type in gpu_types.items():
        if not _RESOURCE_NAME.fullmatch(gpu_type):
            yield (
                f"{key}: {gpu_type} is not the name of a resource of Kubernetes; set one, such as "
                "nvidia.com/gpu"
            )
    if pod := config.kubeflow.training_pod:
        yield from _pod_problems("V1PodSpec", pod, "kubeflow.training_pod")
        yield from _used_names(config)
        if config.kubeflow.training_job == "trainjob":
            for name in sorted(pod.keys() - set(TRAINJOB_FIELDS)):
                yield (
                    f"kubeflow.training_pod.{name}: a TrainJob has no such field; remove it, and "
                    "set it in the ClusterTrainingRuntime of a copy of kubeflow/training.yaml"
                )
    if not config.training.has_peers:
        for key in ("training_pod", "queue"):
            if getattr(config.kubeflow, key):
                yield (
                    f"kubeflow.{key}: has no effect, because a single process trains in the step; "
                    "set training.workers to 2 or more, or remove it and set the resources of the "
                    "step in cluster.resources.Trainer"
                )


def _pod_problems(kind: str, value: Any, path: str) -> Iterator[str]:
    """Yield the problem of each field that Kubernetes would refuse.

    A field has an unknown name or a wrong type, or is required and not set.

    Args:
      kind: the type of the value in the models of Kubernetes's Python client: the name of a model,
        such as `V1PodSpec`, `list[TYPE]`, `dict(str, TYPE)`, or that of a single value.
      value: the value in the settings.
      path: the key of the value.
    """
    # The API server finds such fields too (fieldValidation=Strict in JobClient.create), but only
    # after all steps that precede the training. This import takes half a second.
    from kubernetes import client

    listed = re.fullmatch(r"list\[(.*)\]", kind)
    mapped = re.fullmatch(r"dict\(str, (.*)\)", kind)
    model = getattr(client, kind, None)
    noun, expected = _SINGLE_VALUES.get(kind, ("", type(value)))
    if listed:
        noun, expected = "list", list
    elif mapped or model:
        noun, expected = "mapping", dict
    # Not isinstance, because a bool is an int in Python.
    is_expected = type(value) is expected
    if not is_expected:
        octal = re.fullmatch("0o?([0-7]+)", str(value))
        if expected is int and octal:
            # YAML of Kubernetes has such a number for the mode of a file. Here it is text.
            noun += f" in decimal, here {int(octal[1], 8)}"
        yield f"{path}: must be a {noun}, not {value!r}"
    elif listed:
        for index, each in enumerate(value):
            yield from _pod_problems(listed[1], each, f"{path}.{index}")
    elif mapped:
        for name, each in value.items():
            yield from _pod_problems(mapped[1], each, f"{path}.{name}")
    elif model:
        fields = {name: model.openapi_types[key] for key, name in model.attribute_map.items()}
        for name, inner in value.items():
            if name not in fields:
                yield f"{path}.{name}: unknown field, {hint(str(name), list(fields))}"
            # A quantity may be a number, and null is a field that is not set.
            elif name not in _QUANTITIES and inner is not None:
                yield from _pod_problems(fields[name], inner, f"{path}.{name}")
        # The job has the containers of the pod.
        given = {"containers": [], **value} if kind == "V1PodSpec" else value
        try:
            model(**{key: given.get(name) for key, name in model.attribute_map.items()})
        except ValueError as error:
            # The constructor names the first required field that is None.
            [key] = re.findall("`(.*?)`, must not be `None`", str(error))
            yield f"{path}.{model.attribute_map[key]}: not set, and Kubernetes requires it"


def _used_names(config: PipelineConfig) -> Iterator[str]:
    """Yield the problem of each volume or container of a training pod whose name is used already.

    The API server refuses such a pod too, but only after all steps that precede the training.

    Args:
      config: the settings, whose `kubeflow.training_pod` has no problem of `_pod_problems`.
    """
    container = NODE if config.kubeflow.training_job == "trainjob" else TENSORFLOW
    names = {
        "volumes": [SCRATCH, *([VOLUME] if config.kubeflow.volume else [])],
        "initContainers": [container],
    }
    for field, used in names.items():
        for index, each in enumerate(config.kubeflow.training_pod.get(field) or []):
            name = each["name"]
            if name in used:
                yield (
                    f"kubeflow.training_pod.{field}.{index}.name: the pod has another one with the "
                    f"name {name}; set a name other than {' and '.join(used)}"
                )
            used.append(name)
