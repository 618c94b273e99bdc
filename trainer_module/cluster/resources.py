"""The processes of a training, and the ports, CPU cores, GPUs and the TPU of this machine.

The module does not use TensorFlow, which takes seconds to import and allocates memory on every GPU.
"""

from __future__ import annotations

import glob
import itertools
import os
import re
import socket
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TypeVar

from core.storage import is_url
from trainer_module.cluster.tf_config import CHIEF, PS, VARIABLE, WORKER, Cluster
from trainer_module.settings import ONE_PROCESS, Training, TrainingJob

JOB_FILE = "job.json"
"""The file in `model_run_dir` with the job, the argument of `python -m trainer_module.task`."""

_HOST = "127.0.0.1"
_GPU_VARIABLE = "CUDA_VISIBLE_DEVICES"
_REUSE_PORT = "TF_GRPC_REUSE_PORT"
"""The variable with which TensorFlow can listen on a port that this process has reserved."""
_SECONDS_TO_LIST_GPUS = 30

_LOCAL = "local"
"""The address of the TPU of this machine."""
_TPU_FILE = "/dev/accel0"
_VFIO_FILES = "/dev/vfio/[0-9]*"
"""The devices of TPUs of newer generations. Other hardware has such files too."""
_LAST_TPU_RELEASE = (2, 20)
"""The last release of tensorflow-tpu, the build of TensorFlow that contains the driver of TPUs."""

Item = TypeVar("Item")


def count_processes(training: Training) -> dict[str, int]:
    """Return task type -> number of processes that a training requires."""
    if training.strategy == "parameter_server":
        return {CHIEF: 1, WORKER: training.workers, PS: training.parameter_servers}
    return {WORKER: training.workers} if training.has_peers else {CHIEF: 1}


def write_job(job: TrainingJob) -> str:
    """Write a job atomically to `JOB_FILE` in its `model_run_dir`, and return the path of the file.

    Raises:
      OSError: the local file cannot be written.
      tensorflow.errors.OpError: the remote file cannot be written.
    """
    path = os.path.join(job.model_run_dir, JOB_FILE)
    text = job.model_dump_json(indent=2)
    if is_url(path):
        import tensorflow as tf

        # An object appears once it is complete.
        with tf.io.gfile.GFile(path, "w") as file:
            file.write(text)
    else:
        os.makedirs(job.model_run_dir, exist_ok=True)
        Path(f"{path}.new").write_text(text, encoding="utf-8")
        os.replace(f"{path}.new", path)
    return path


@dataclass(frozen=True)
class ProcessResources:
    """The resources of the process of a task."""

    task: Cluster
    """The cluster, with the task of the process."""
    environ: dict[str, str]
    """The environment of the process."""
    cores: set[int] | None
    """The CPU cores on which the process runs; None: all."""
    port: socket.socket
    """A socket that reserves the port of the task until it is closed."""


def allocate(counts: Mapping[str, int]) -> list[ProcessResources]:
    """Divide this machine: free ports for all processes, GPUs and cores for the workers.

    Parameter servers and their coordinator share all cores and have no GPU: they are mostly idle,
    and while they work, most workers wait for them.

    Args:
      counts: task type -> number of processes, see `count_processes`.

    Raises:
      ValueError: there are fewer GPUs than workers.
    """
    ports = {kind: [_free_port() for _ in range(count)] for kind, count in counts.items()}
    spec = {kind: [f"{_HOST}:{port.getsockname()[1]}" for port in ports[kind]] for kind in counts}
    workers = counts.get(WORKER, 0)
    gpus = _gpus(os.environ) if workers else []
    if 0 < len(gpus) < workers:
        raise ValueError(_too_few_gpus(workers, len(gpus)))
    # Collective operations need the same number of devices in every process.
    gpus_of_workers = split_evenly(gpus[: len(gpus) // workers * workers], workers) if gpus else []
    # TensorFlow makes its thread pools as large as the number of cores a process may run on.
    cores = split_evenly(sorted(os.sched_getaffinity(0)), workers) if workers else []
    allocated = []
    for task in (Cluster(spec, kind, index) for kind, n in counts.items() for index in range(n)):
        environ, works = _environ(task), task.task_type == WORKER
        if gpus:
            environ[_GPU_VARIABLE] = ",".join(gpus_of_workers[task.task_index]) if works else ""
        its_cores = set(cores[task.task_index]) if works else None
        port = ports[task.task_type][task.task_index]
        allocated.append(ProcessResources(task, environ, its_cores, port))
    return allocated


def check_devices(training: Training, environ: Mapping[str, str]) -> None:
    """Check that this machine has the devices for a training, before any process is started.

    Args:
      training: the settings.
      environ: the environment of the training, with the name of a TPU and the visible GPUs.

    Raises:
      ValueError: a GPU or a TPU is missing, or the strategy that `auto` selects does not support
        the settings.
    """
    address = tpu_address(training, environ)
    if training.strategy == "tpu" and address is None:
        raise ValueError(no_tpu_message())
    is_local = training.strategy in ("tpu", "auto") and address == _LOCAL
    if is_local and not _may_have_tpu(environ):
        setting = "training.tpu" if training.tpu else "TPU_NAME"
        problem = f"{setting}: {_LOCAL}, but this machine has no TPU ({_TPU_FILE} does not exist)"
        remedy = "set the name or the grpc:// address of a TPU, or another training.strategy"
        raise ValueError(no_tpu_message(f"{problem}; {remedy}"))
    gpus = len(_gpus(environ))
    if training.strategy == "auto":
        if address is not None:
            training.check_strategy("tpu", f"auto: {address}")
        training.check_strategy(*training.resolve_auto(gpus))
    if training.strategy in ONE_PROCESS and training.strategy != "tpu":
        training.check_gpus(gpus)
    elif training.strategy != "tpu" and 0 < gpus < training.workers:
        raise ValueError(_too_few_gpus(training.workers, gpus))


def no_tpu_message(failure: str | None = None) -> str:
    """Return the message that there is no TPU, with the remedy for the installed TensorFlow.

    Args:
      failure: the reason why a TPU with an address cannot be reached; None: no address is known.
    """
    problem = failure or (
        "training.strategy: tpu, but there is no TPU: training.tpu and TPU_NAME are not set, and "
        "this machine has none"
    )
    installed = _tensorflow_release()
    if installed is None or installed <= _LAST_TPU_RELEASE:
        return problem
    return (
        f"{problem}. TensorFlow {installed[0]}.{installed[1]} cannot use a TPU, because "
        f"tensorflow-tpu ends at {_LAST_TPU_RELEASE[0]}.{_LAST_TPU_RELEASE[1]}; use TFX 1.16 on "
        "Python 3.10 with tensorflow-tpu 2.16, or another training.strategy"
    )


def _tensorflow_release() -> tuple[int, int] | None:
    """Return the major and minor version of the package tensorflow; None if it is not installed."""
    try:
        major, minor, *_ = metadata.version("tensorflow").split(".")
    except metadata.PackageNotFoundError:
        return None
    return int(major), int(minor)


def tpu_address(training: Training, environ: Mapping[str, str]) -> str | None:
    """Return the address of a TPU from the settings, the environment or this machine.

    Args:
      training: the settings.
      environ: the environment of the training.

    Returns:
      The address; None if there is no TPU.
    """
    if training.tpu:
        return training.tpu
    for variable in ("TPU_NAME", "KUBE_GOOGLE_CLOUD_TPU_ENDPOINTS"):
        if environ.get(variable):
            return environ[variable]
    if os.path.exists(_TPU_FILE) or environ.get("TPU_ACCELERATOR_TYPE"):
        return _LOCAL
    return None


def _may_have_tpu(environ: Mapping[str, str]) -> bool:
    """Return whether this machine has a device that is, or may be, a TPU."""
    files = [_TPU_FILE, *glob.glob(_VFIO_FILES)]
    return any(map(os.path.exists, files)) or bool(environ.get("TPU_ACCELERATOR_TYPE"))


def split_evenly(items: Sequence[Item], count: int) -> list[Sequence[Item]]:
    """Cut `items` into `count` parts of nearly equal length; repeat items if there are too few."""
    if len(items) < count:
        return [[items[index % len(items)]] for index in range(count)]
    ends = [len(items) * index // count for index in range(count + 1)]
    return [items[start:end] for start, end in itertools.pairwise(ends)]


def _free_port() -> socket.socket:
    """Return a socket that has a port, so that only a process with `_REUSE_PORT` listens there."""
    reserved = socket.socket()
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    # TensorFlow's servers listen on every interface, whatever their address in TF_CONFIG.
    reserved.bind(("", 0))
    return reserved


def _environ(task: Cluster) -> dict[str, str]:
    environ = dict(os.environ)
    # gRPC ignores `no_proxy` if there is `no_grpc_proxy`.
    direct = environ.get("no_grpc_proxy") or environ.get("no_proxy") or ""
    environ |= {
        # Without a buffer, lines are in the log as soon as they are written.
        "PYTHONUNBUFFERED": "1",
        # Through a proxy, gRPC would never reach the ports of this machine.
        "no_grpc_proxy": ",".join([*filter(None, direct.split(",")), _HOST]),
        _REUSE_PORT: "1",
        VARIABLE: task.to_json(),
    }
    if task.processes == 1:
        del environ[VARIABLE]
    return environ


def _too_few_gpus(workers: int, gpus: int) -> str:
    return (
        f"training.workers: {workers} workers, but {gpus} GPUs; set at most that many, "
        f"or {_GPU_VARIABLE}= in the environment to train on the CPU"
    )


def _gpus(environ: Mapping[str, str]) -> list[str]:
    """Return the names of the GPUs, without TensorFlow, which would allocate their memory."""
    chosen = environ.get(_GPU_VARIABLE)
    if chosen == "":
        return []
    try:
        listed = subprocess.run(
            ["nvidia-smi", "--query-gpu=index", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            timeout=_SECONDS_TO_LIST_GPUS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return []
    # Without a driver, nvidia-smi may print an error message and still return 0.
    found = re.findall(r"^\d+$", listed.stdout, re.MULTILINE)
    if chosen is None or not found:
        return found
    # CUDA ignores everything from the first invalid name on, such as -1.
    return list(
        itertools.takewhile(
            lambda name: name in found or name.startswith(("GPU-", "MIG-")),
            map(str.strip, chosen.split(",")),
        )
    )
