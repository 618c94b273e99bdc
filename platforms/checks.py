"""Checks of the settings against what each platform supports; this module imports no TFX."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Iterator
from operator import attrgetter
from typing import Any, Literal
from urllib.parse import urlsplit

import click

import sample_data
from core.errors import ConfigError
from core.settings import hint
from core.storage import is_url
from pipeline.cluster_settings import LOCAL
from pipeline.config import PipelineConfig
from pipeline.destinations import DESTINATIONS, destination_paths
from pipeline.nodes import TRAINER
from platforms.flink import checks as flink
from platforms.training_jobs.manifests import NODE, SCRATCH, TENSORFLOW, VOLUME
from preprocessing.reading.globs import is_data_folder
from preprocessing.reading.span_pattern import parse_pattern

Target = Literal["local", "vertex", "kubeflow"]
"""The platforms, by their names in `--target`."""
ClusterTarget = Literal["vertex", "kubeflow"]
"""The platforms that run a compiled pipeline."""

_IMAGE = {"cluster.image": "HOST/PROJECT/amazon-reviews:TAG"}
_REQUIRED = {
    "local": {},
    "kubeflow": _IMAGE,
    "vertex": {
        **_IMAGE,
        "vertex.project": "the Google Cloud project of runs",
        "vertex.region": "the Google Cloud region of runs",
        "data.input_base": "gs://BUCKET/FOLDER with the input files",
    },
}
"""Target -> setting that it requires -> the value to set."""

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


def check_target(config: PipelineConfig, target: Target) -> None:
    """Check the settings against what a platform supports.

    Raises:
      ConfigError: a setting is missing, or the platform does not support it. The message names the
        key of the setting.
    """
    for problem in _problems(config, target):
        raise ConfigError(problem)
    if target == "local":
        sample = {"data.input_base": os.path.dirname(sample_data.__file__)}
        flink.check_paths(config, {**sample, **used_paths(config)}.items())
        flink.check_local(config)
    else:
        flink.check_compiled(config, used_paths(config).items())


def check_engine(own: str) -> bool:
    """Return whether this process is the TFX command line.

    The TFX command line replaces the method `run` of the runner of its engine, in order to read the
    pipeline. The runner of another engine would start the pipeline.

    Args:
      own: the engine of the runner that calls this function.

    Raises:
      ConfigError: the command line names another engine.
    """
    context = click.get_current_context(silent=True)
    engine = context.params.get("engine") if context else None
    if engine not in (None, own):
        raise ConfigError(f"--engine {engine}: this file is for --engine {own}")
    return engine is not None


def cluster_name(config: PipelineConfig) -> str:
    """Return the pipeline's name with dashes, for a cluster that allows no underscores."""
    return config.name.replace("_", "-")


def used_paths(config: PipelineConfig) -> dict[str, str]:
    """Return setting -> path, for each path that the steps read or write.

    The paths of the destination are included without a push too: the baseline and
    `training.warm_start` read the served model there.
    """
    paths = {
        "paths.root": config.paths.root,
        "paths.checkpoints": config.paths.checkpoints,
        "data.input_base": config.data.input_base,
        **destination_paths(config),
    }
    return {key: path for key, path in paths.items() if path}


def _problems(config: PipelineConfig, target: Target) -> Iterator[str]:
    data, push = config.data, config.push.destination
    if data.splits and not data.input_base:
        yield (
            "data.input_base: not set, and data.splits requires it; set the folder that contains "
            "the files"
        )
    yield from _inside_input(config)
    destination = DESTINATIONS[push]
    if target not in destination.targets:
        on = " or ".join(destination.targets)
        yield f"push.destination: {push} requires --target {on}; set filesystem, or none"
    for key, right in {**_REQUIRED[target], **destination.required}.items():
        if not attrgetter(key)(config):
            yield f"{key}: not set, and {target} requires it; set {right}"
    if target != "local":
        yield from _training(config)
        yield from _loopback(config)
    if target == "kubeflow":
        yield from _kubeflow(config)
    if target == "vertex":
        yield from _vertex(config)


def is_bucket(path: str) -> bool:
    """Return whether a path is in a bucket of Google Cloud Storage."""
    return path.startswith("gs://")


def _inside_input(config: PipelineConfig) -> Iterator[str]:
    """Yield the problem of each folder whose files the next run would read as input."""
    base = (config.data.input_base or "").rstrip("/")
    # With `data.splits` only the files that match its globs are read.
    if not base or config.data.splits:
        return
    pattern = parse_pattern(base)
    for key in ("root", "metadata", "serving", "checkpoints"):
        path = getattr(config.paths, key)
        inside = pattern.inside(path) if pattern else path.removeprefix(base + "/")
        if inside != path and is_data_folder(inside):
            yield (
                f"paths.{key}: {path} is inside data.input_base ({base}), and every file there is "
                "read as input; set a folder outside of it, or name the input files in "
                "data.splits"
            )


def _training(config: PipelineConfig) -> Iterator[str]:
    """Yield the problem of a training that does not fit the GPUs of each training process."""
    training = config.training
    trainer = config.cluster.resources.get(TRAINER)
    gpus = trainer.gpus if trainer else 0
    reason = f"cluster.resources.Trainer.gpus is {gpus}"
    try:
        training.check_gpus(gpus)
        if training.strategy == "auto":
            training.check_strategy(training.resolve_auto(gpus)[0], f"auto: {reason}")
    except ValueError as error:
        yield str(error) if reason in str(error) else f"{error} ({reason})"


def _loopback(config: PipelineConfig) -> Iterator[str]:
    """Yield the problem of each address at which a container would reach only itself."""
    flink = config.beam.flink
    addresses = {"tracking.mlflow": config.tracking.mlflow}
    if config.beam.runner == "flink":
        addresses["beam.flink.job_endpoint"] = flink.job_endpoint
        addresses["beam.flink.master"] = None if flink.master == LOCAL else flink.master
    for key, address in addresses.items():
        if address and _is_loopback(address):
            yield (
                f"{key}: {address} is not reachable from a container; set an address that the "
                "containers of the steps can reach"
            )


def _is_loopback(address: str) -> bool:
    """Return whether an address is that of the machine or container that uses it.

    0.0.0.0 is one too: a server listens on it, and a client that connects to it reaches itself.

    Args:
      address: a URL, or `HOST:PORT`.
    """
    host = urlsplit(address if is_url(address) else f"//{address}").hostname or ""
    try:
        found = ipaddress.ip_address(host)
    except ValueError:  # The host is a name.
        return host.rstrip(".") == "localhost"
    return found.is_loopback or found.is_unspecified


def _kubeflow(config: PipelineConfig) -> Iterator[str]:
    volume = config.kubeflow.volume
    if not is_bucket(config.paths.root):
        # Kubeflow's launcher requires a bucket as pipeline root, and TensorFlow reads gs:// ones.
        yield (
            f"paths.root: {config.paths.root} is not in a bucket of Google Cloud Storage; set "
            "gs://BUCKET/FOLDER"
        )
    mount = f"{volume.mount.rstrip('/')}/" if volume else "no volume"
    for key, path in used_paths(config).items():
        # Neither TensorFlow nor Beam in the image reads other URLs, such as s3://. With file:// a
        # step would write into its pod, whose files are lost.
        if not is_bucket(path) and not f"{path}/".startswith(mount):
            yield (
                f"{key}: {path} is not accessible from the pods of Kubeflow; set "
                "gs://BUCKET/FOLDER, or a path under kubeflow.volume.mount"
            )
    for key, gpu_type in _gpu_types(config).items():
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


def _vertex(config: PipelineConfig) -> Iterator[str]:
    for key, path in used_paths(config).items():
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
    given = _gpu_types(config)
    if not given:
        return
    # This import takes seconds.
    from google.cloud.aiplatform_v1.types import AcceleratorType

    [_, *known] = AcceleratorType.__members__  # The first one is ACCELERATOR_TYPE_UNSPECIFIED.
    for key, gpu_type in given.items():
        if gpu_type not in known:
            yield f"{key}: {gpu_type} is not an accelerator of Vertex AI, {hint(gpu_type, known)}"


def _gpu_types(config: PipelineConfig) -> dict[str, str]:
    """Return setting -> type of GPU, for each component whose settings name one."""
    return {
        f"cluster.resources.{name}.gpu_type": resources.gpu_type
        for name, resources in config.cluster.resources.items()
        if resources.gpu_type
    }
