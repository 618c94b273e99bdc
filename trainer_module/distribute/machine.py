"""What this machine has: ports, CPU cores and GPUs for the processes of a local cluster, a TPU.

Found without TensorFlow, which takes seconds to import and memory of every GPU.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from trainer_module import combinations
from trainer_module.distribute import cluster
from trainer_module.distribute.cluster import Cluster
from trainer_module.settings import Training

_HOST = "127.0.0.1"
_GPU_VARIABLE = "CUDA_VISIBLE_DEVICES"
_SECONDS_TO_LIST_GPUS = 30

NO_TPU = (
    "training.strategy: tpu, but there is no TPU: training.tpu and TPU_NAME are not set, and this "
    "machine has none"
)

Item = TypeVar("Item")


@dataclass(frozen=True)
class Place:
    """What one process gets.

    Attributes:
      task: what it is in the cluster.
      environ: its environment, with the TF_CONFIG that says so if there are other processes.
      cores: CPU cores that it runs on; None: all.
    """

    task: Cluster
    environ: dict[str, str]
    cores: set[int] | None


def share(counts: Mapping[str, int]) -> list[Place]:
    """A place on this machine for each process: free ports, and GPUs and cores for the workers.

    Parameter servers and the coordinator beside them get no GPU, and all cores: they work for
    short moments, in which workers mostly wait for them.

    Args:
      counts: task type -> how many processes.

    Raises:
      ValueError: there are GPUs, but fewer than workers.
    """
    ports = iter(_free_ports(sum(counts.values())))
    spec = {kind: [f"{_HOST}:{next(ports)}" for _ in range(n)] for kind, n in counts.items()}
    tasks = [Cluster(spec, kind, index) for kind, n in counts.items() for index in range(n)]
    environs = [_environ(task) for task in tasks]
    cores: list[set[int] | None] = [None] * len(tasks)
    workers = [i for i, task in enumerate(tasks) if task.task_type == cluster.WORKER]
    if workers:
        gpus = _gpus(os.environ)
        if gpus:
            gpu_shares = iter(_share_gpus(gpus, len(workers)))
            for i, environ in enumerate(environs):
                environ[_GPU_VARIABLE] = next(gpu_shares) if i in workers else ""
        # TensorFlow makes its thread pools as large as the number of cores a process may run on.
        all_cores = sorted(os.sched_getaffinity(0))
        for i, share_of_cores in zip(workers, stretches(all_cores, len(workers)), strict=True):
            cores[i] = set(share_of_cores)
    return [Place(*place) for place in zip(tasks, environs, cores, strict=True)]


def check(training: Training, environ: Mapping[str, str]) -> None:
    """Finds what this machine lacks for a training, before anything is started.

    Raises:
      ValueError: no TPU, too few GPUs, a malformed TF_CONFIG, or settings that are impossible under
        the strategy that `auto` is here; one line.
    """
    address = tpu_address(training, environ)
    if training.strategy == "tpu" and address is None:
        raise ValueError(NO_TPU)
    in_cluster = Cluster.from_environ(environ)
    gpus = len(_gpus(environ))
    problems = []
    if training.strategy == "auto":
        if address is not None:
            problems.append(combinations.problem(training, "tpu", f"auto: {address}"))
        name, reason = auto_without_tpu(training, in_cluster, gpus)
        problems.append(combinations.problem(training, name, reason))
    if training.strategy in ("auto", "one_device", "mirrored", "central_storage"):
        problems.append(combinations.too_few_gpus(training, gpus))
    elif training.strategy != "tpu" and in_cluster is None and 0 < gpus < training.workers:
        problems.append(_too_few_gpus_for_workers(training.workers, gpus))
    for problem in filter(None, problems):
        raise ValueError(problem)


def auto_without_tpu(training: Training, there: Cluster | None, gpus: int) -> tuple[str, str]:
    """(strategy, why) of `auto` in the cluster of TF_CONFIG, or in a process with `gpus` GPUs."""
    if there is not None:
        if there.has_parameter_servers:
            return "parameter_server", "auto: TF_CONFIG names parameter servers"
        return "multi_worker_mirrored", "auto: TF_CONFIG names several workers"
    found = f"auto: no TPU, no TF_CONFIG, {gpus} GPUs, training.devices {training.devices or '-'}"
    return combinations.of_one_process(training, gpus), found


def tpu_address(training: Training, environ: Mapping[str, str]) -> str | None:
    """Where a TPU may be: as set, as the environment says, or on this very machine; or None."""
    if training.tpu:
        return training.tpu
    for variable in ("TPU_NAME", "KUBE_GOOGLE_CLOUD_TPU_ENDPOINTS"):
        if environ.get(variable):
            return environ[variable]
    if os.path.exists("/dev/accel0") or environ.get("TPU_ACCELERATOR_TYPE"):
        return "local"
    return None


def stretches(items: Sequence[Item], count: int) -> list[Sequence[Item]]:
    """`items` cut into `count` stretches of about the same length; dealt out if there are fewer."""
    if len(items) < count:
        return [[items[index % len(items)]] for index in range(count)]
    ends = [len(items) * index // count for index in range(count + 1)]
    return [items[start:end] for start, end in itertools.pairwise(ends)]


def _free_ports(count: int) -> list[int]:
    """Different ports that nobody listens on at this moment."""
    with contextlib.ExitStack() as held:
        # TensorFlow's servers listen on every interface, whatever address they are known by.
        sockets = [held.enter_context(socket.create_server(("", 0))) for _ in range(count)]
        return [each.getsockname()[1] for each in sockets]


def _environ(task: Cluster) -> dict[str, str]:
    packages = str(Path(__file__).parents[2])
    path = os.environ.get("PYTHONPATH")
    environ = {
        **os.environ,
        "PYTHONPATH": f"{packages}{os.pathsep}{path}" if path else packages,
        # Lines reach the log when they are written, not when a buffer is full.
        "PYTHONUNBUFFERED": "1",
        # gRPC would ask a proxy for the way to this machine itself, and wait for ever.
        "no_grpc_proxy": ",".join([*_not_by_proxy(os.environ), _HOST]),
        cluster.VARIABLE: task.to_json(),
    }
    if task.processes == 1:
        del environ[cluster.VARIABLE]
    return environ


def _not_by_proxy(environ: Mapping[str, str]) -> list[str]:
    """Hosts that gRPC reaches directly; the first of these variables hides the second."""
    hosts = environ.get("no_grpc_proxy") or environ.get("no_proxy") or ""
    return [host for host in hosts.split(",") if host]


def _share_gpus(gpus: Sequence[str], processes: int) -> list[str]:
    """A value of CUDA_VISIBLE_DEVICES for each process, the same number of GPUs in each."""
    if len(gpus) < processes:
        raise ValueError(_too_few_gpus_for_workers(processes, len(gpus)))
    # Collective operations need the same number of devices in every process.
    even = gpus[: len(gpus) // processes * processes]
    return [",".join(stretch) for stretch in stretches(even, processes)]


def _too_few_gpus_for_workers(workers: int, gpus: int) -> str:
    return (
        f"training.workers: {workers} workers, but {gpus} GPUs; set at most that many, "
        f"or {_GPU_VARIABLE}= in the environment to train on the CPU"
    )


def _gpus(environ: Mapping[str, str]) -> list[str]:
    """Names of the GPUs, found without TensorFlow, which would take their memory."""
    if _GPU_VARIABLE in environ:
        names = (name.strip() for name in environ[_GPU_VARIABLE].split(","))
        # CUDA stops at the first name that is none, such as -1.
        return list(itertools.takewhile(lambda name: name and not name.startswith("-"), names))
    try:
        listed = subprocess.run(
            ["nvidia-smi", "--query-gpu=index", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            timeout=_SECONDS_TO_LIST_GPUS,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    indices = listed.stdout.split()
    # A machine without a driver may print an excuse, and call it a success.
    return indices if listed.returncode == 0 and all(map(str.isdecimal, indices)) else []
