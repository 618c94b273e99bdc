"""Settings of Apache Flink, for `beam.runner: flink`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from core.flink.names import LOCAL, WORKER
from core.settings import PositiveInt, Section
from pipeline.cluster_settings import Quantity, Toleration

Address = Annotated[str, Field(pattern=r"^[A-Za-z0-9.-]+:[0-9]+$")]
"""`HOST:PORT`."""
JvmMemory = Annotated[str, Field(pattern=r"^[0-9]+[mg]$")]
"""Memory as Java and Flink write it: `512m`, `2g`."""


class FlinkOnKubernetes(Section):
    """The Flink cluster that `amazon-reviews flink` describes for Kubernetes."""

    # The operator accepts no other names.
    name: Annotated[str, Field(pattern=r"^[a-z]([-a-z0-9]{0,43}[a-z0-9])?$")] = (
        "amazon-reviews-flink"
    )
    """Name of the FlinkDeployment, and first part of the names of its Services."""
    flink_version: Annotated[str, Field(pattern=r"^v[0-9]+_[0-9]+$")] = "v1_19"
    """Line of Flink of both images, as the operator writes it. Beam 2.74 has job servers for
    `v1_19`, `v1_20` and `v2_0`; the tests run 1.19."""
    image: Annotated[str, Field(min_length=1)] = "flink:1.19-java17"
    """Image of Flink."""
    job_server_image: Annotated[str, Field(min_length=1)] = (
        "apache/beam_flink1.19_job_server:2.62.0"
    )
    """Image of Beam's job server for this line of Flink."""
    task_managers: PositiveInt = 2
    """Number of TaskManagers."""
    slots: PositiveInt = 2
    """Slots of each TaskManager."""
    task_manager_memory: JvmMemory = "4g"
    """Memory of the process of each TaskManager, which contains `beam.flink.network_memory`. In the
    benchmark a TaskManager took 1.1 GiB, of which the heap had at most 768 MiB; with the
    statistics of all Examples this heap did not suffice."""
    task_manager_cpu: Annotated[float, Field(gt=0)] = 1.0
    """CPU cores of each TaskManager, without its Python workers."""
    restarts: Annotated[int, Field(ge=0)] = 3
    """Restarts of a job, such as after the loss of a worker. Failures of tasks within 10 seconds
    count as one."""
    workers_memory: Quantity = "3Gi"
    """Memory of the Python workers next to each TaskManager; their libraries take about 750 MiB,
    which the workers share in part, and a worker up to 700 MiB more. Each pipeline that runs at the
    same time has `beam.flink.workers_per_task_manager` of them."""
    workers_cpu: Annotated[float, Field(gt=0)] = 2.0
    """CPU cores of the Python workers next to each TaskManager."""
    service_account: Annotated[str, Field(min_length=1)] = "flink"
    """Service account of Flink, which the Helm chart of the operator creates; the TaskManagers
    have `kubeflow.service_account` if that is set."""
    node_selector: dict[str, str] = {}
    """Node selector of the pods of Flink and of the job server."""
    tolerations: list[Toleration] = []
    """Tolerations of the pods of Flink and of the job server."""


class Flink(Section):
    """Apache Flink, for `beam.runner: flink`."""

    master: Literal["[local]"] | Address = LOCAL
    """REST address of a Flink cluster, `HOST:PORT`; `[local]` starts Flink inside the job
    server."""
    job_endpoint: Address | None = None
    """`HOST:PORT` of a running Beam job server; None: the run starts one, which needs Java and the
    jars of `make flink`."""
    jars: str | None = None
    """Folder with the jars of `make flink` or `python -m core.flink.jars`; None:
    `.cache/flink/lib` of this checkout."""
    parallelism: PositiveInt = 2
    """Slots that a job uses. A slot requires a core: on two cores, which one worker keeps busy, two
    slots took as long as one."""
    environment: Literal["LOOPBACK", "EXTERNAL", "PROCESS"] = "LOOPBACK"
    """Place of Beam's Python workers: `LOOPBACK` in the process of the component, on the machine of
    the cluster; `EXTERNAL` in the worker pool next to each TaskManager; `PROCESS` in processes that
    each TaskManager starts."""
    worker_pool: Address = "localhost:50000"
    """`EXTERNAL`: address of the worker pool, as the TaskManager sees it."""
    worker_command: Annotated[str, Field(pattern=r"^/")] | None = None
    """`PROCESS`: absolute path of `amazon-reviews-beam-worker` on the machines of the TaskManagers;
    None: that of this installation."""
    workers_per_task_manager: PositiveInt = 1
    """Python workers of each TaskManager, which take up to 700 MiB each. A worker that serves
    several slots runs them as threads of one interpreter."""
    shared_paths: bool = False
    """Whether the TaskManagers see the same file system as this machine. A remote cluster without
    a shared file system requires `gs://` or another object store."""
    timeout_seconds: PositiveInt = 1800
    """Greatest time without progress of any task; the job is cancelled after it. It must be longer
    than the longest unit of work, which is a whole file for gzip and zstd."""
    job_server_memory: JvmMemory = "2g"
    """Java heap of the job server; with `[local]` it contains all of Flink. With a cluster, job
    server and JobManager together took 0.9 GiB in the benchmark."""
    network_memory: JvmMemory = "512m"
    """Flink's memory for network buffers, with `[local]` and of each TaskManager on Kubernetes.
    Transform needs more than Flink's default: with a vocabulary it has about 400 connections
    between its tasks, and each of them has buffers."""
    kubernetes: FlinkOnKubernetes = FlinkOnKubernetes()

    @field_validator("master", mode="before")
    @classmethod
    def _brackets_are_no_list(cls, value: Any) -> Any:
        # Without quotes YAML reads [local] as a list of one word.
        return LOCAL if value == ["local"] else value

    @property
    def on_this_machine(self) -> bool:
        """Whether Flink runs on this machine."""
        return self.master == LOCAL or self.master.startswith(("localhost:", "127.0.0.1:"))

    @model_validator(mode="after")
    def _workers_are_where_the_cluster_is(self) -> Flink:
        if self.job_endpoint and self.master == LOCAL:
            raise ValueError(
                "job_endpoint requires the REST address of its Flink cluster; set master to "
                "HOST:PORT"
            )
        if self.on_this_machine:
            return self
        if self.environment == "LOOPBACK":
            raise ValueError(
                "environment LOOPBACK requires a cluster on this machine, and master is "
                f"{self.master}; set environment to EXTERNAL or PROCESS"
            )
        if self.environment == "PROCESS" and not self.worker_command:
            raise ValueError(
                "environment PROCESS requires worker_command, the path of "
                f"{WORKER} on the machines of {self.master}"
            )
        return self
