"""Settings that only clusters require: image, resources, Vertex AI, Kubeflow, Apache Flink."""

from __future__ import annotations

import posixpath
import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

from core.settings import LocalPath, PositiveInt, Section
from pipeline.server_addresses import has_password

_QUANTITY = r"^([0-9]+(?:\.[0-9]+)?)([kMGTP]|[KMGTP]i)?$"
_UNITS: dict[str | None, int] = {
    None: 1,
    **{unit: 1000**power for power, unit in enumerate("kMGTP", start=1)},
    **{f"{unit}i": 1024**power for power, unit in enumerate("KMGTP", start=1)},
}
"""Unit of a quantity -> bytes."""


def _check_memory(quantity: str) -> str:
    number, unit = re.fullmatch(_QUANTITY, quantity).groups()  # type: ignore[union-attr]
    if float(number) * _UNITS[unit] < 2**20:
        raise ValueError("must be at least 1 MiB and have a unit, such as 16G")
    return quantity


Quantity = Annotated[str, Field(pattern=_QUANTITY), AfterValidator(_check_memory)]
"""A Kubernetes quantity of bytes: `16G`, `512Mi`."""
DnsLabel = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")]
"""The name of a namespace or a queue in Kubernetes."""
_DNS_PART = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
DnsName = Annotated[str, Field(max_length=253, pattern=rf"^{_DNS_PART}(\.{_DNS_PART})*$")]
"""The name of another object in Kubernetes."""
_IMAGE_PART = "[a-z0-9]+((\\.|_|__|-+)[a-z0-9]+)*"
_IMAGE = re.compile(
    r"(([A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\])(:[0-9]+)?/)?"  # the host of a registry, perhaps in IPv6
    rf"{_IMAGE_PART}(/{_IMAGE_PART})*"
    r"(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?"
    r"(@(sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}))?"  # the digests that OCI registers
)


def _check_image(name: str) -> str:
    if not _IMAGE.fullmatch(name):
        raise ValueError(
            "must be the name of an image, such as example.com/shop/amazon-reviews:1, with small "
            "letters except in the host and the tag, and perhaps with @sha256: and 64 hexadecimal "
            "digits, or @sha512: and 128"
        )
    return name


Image = Annotated[str, AfterValidator(_check_image)]
"""The name of a container image, as container runtimes read it."""


class Resources(Section):
    """The resources of the container of a step."""

    cpu: Annotated[float, Field(gt=0)] | None = None
    """CPU cores of the container; None: the default of the cluster."""
    memory: Quantity | None = None
    """Memory of the container, as a Kubernetes quantity such as `16G`; None: the default of the
    cluster."""
    gpus: Annotated[int, Field(ge=0)] = 0
    """Number of GPUs."""
    gpu_type: str | None = None
    """Vertex AI: the accelerator type, such as `NVIDIA_TESLA_T4`. Kubernetes: the resource; None:
    `nvidia.com/gpu`."""

    @model_validator(mode="after")
    def _a_gpu_type_needs_gpus(self) -> Resources:
        if self.gpu_type and not self.gpus:
            raise ValueError(
                f"gpu_type: {self.gpu_type} has no effect with gpus: 0; set gpus to their number, "
                "or remove gpu_type"
            )
        return self


class Cluster(Section):
    """Settings for every cluster."""

    image: Image | None = None
    """Container image of every step, which contains this package, such as
    `HOST/PROJECT/amazon-reviews:TAG`."""
    resources: dict[str, Resources] = {}
    """Component -> resources of its container; for `Trainer`, of each process of the training."""
    training_timeout_hours: Annotated[float, Field(gt=0)] = 24.0
    """Timeout of a training on several machines in hours, including its time in a queue."""


def _check_region(name: str) -> str:
    if not re.fullmatch("[a-z]+-[a-z]+[0-9]+", name):
        raise ValueError("must be a region, such as europe-west4, and no zone of it")
    return name


Region = Annotated[str, AfterValidator(_check_region)]
"""The name of a region of Google Cloud. It is a part of the host name of Vertex AI, so a wrong one
would be a server that does not respond."""


def _check_project(name: str) -> str:
    if not re.fullmatch("([a-z0-9.-]+:)?[a-z0-9][a-z0-9-]*", name):
        raise ValueError(
            "must be the id of a project, with small letters, digits and hyphens, or its number"
        )
    return name


def _to_text(value: Any) -> Any:
    # YAML reads the number of a project as an integer.
    return str(value) if type(value) is int else value


Project = Annotated[str, BeforeValidator(_to_text), AfterValidator(_check_project)]
"""The id of a project of Google Cloud, perhaps below a domain, or its number."""


class Vertex(Section):
    """Vertex AI Pipelines, for `--target vertex`."""

    project: Project | None = None
    """Google Cloud project."""
    region: Region | None = None
    """Google Cloud region."""
    service_account: str | None = None
    """Service account of the steps; None: the default of the project."""
    network: str | None = None
    """VPC network to peer with, `projects/NUMBER/global/networks/NAME`."""
    machine_type: str = "n1-standard-8"
    """Machine type of each training replica of a CustomJob, and of the endpoint."""
    serving_image: Image | None = None
    """TensorFlow Serving image, in a registry of the project, for `push.destination: vertex`."""


_NEEDED = (
    *("/tmp", "/bin", "/dev", "/etc", "/lib", "/lib64", "/proc", "/sbin", "/sys"),
    *("/opt/venv/bin", "/opt/venv/lib", "/usr/bin", "/usr/lib", "/usr/lib64", "/usr/sbin"),
    *("/usr/local/bin", "/usr/local/lib", "/usr/local/nvidia"),
    *("/run/secrets", "/var/run/secrets"),
)
"""The folders of a container that its processes require; the last two are those of tokens. A volume
at a folder that contains one of them would hide it too."""


class Volume(Section):
    """A PersistentVolumeClaim that all steps mount, for data outside a bucket."""

    claim: DnsName
    """Name of the PersistentVolumeClaim."""
    mount: Annotated[str, Field(pattern=r"^/[^:]*$")]
    """Absolute path of the mount point; not `/tmp`, which is for temporary files, and no other
    folder that the container requires, such as `/usr`."""

    @field_validator("mount")
    @classmethod
    def _is_normal_and_hides_no_other_folder(cls, mount: str) -> str:
        folder = posixpath.normpath(f"/{mount.lstrip('/')}")
        if any(f"{needed}/".startswith(f"{folder.rstrip('/')}/") for needed in _NEEDED):
            raise ValueError(
                f"a volume at {folder} would hide files of the container; set another folder, such "
                "as /data"
            )
        return folder


JobKindName = Literal["auto", "tfjob", "trainjob", "jobset"]
RUNTIME = "amazon-reviews"
"""Name of the ClusterTrainingRuntime of TrainJobs."""

_NAMES = "the processes of a training find each other by the host names that the job sets"
_OF_THE_JOB = {
    "containers": "cluster.image and cluster.resources describe the container",
    "restartPolicy": "the kind of the job determines which pods are restarted",
    "hostname": _NAMES,
    "subdomain": _NAMES,
}
"""Field of a pod that the settings of a training job cannot have -> the reason."""


class Kubeflow(Section):
    """Kubeflow Pipelines, for `--target kubeflow`."""

    endpoint: str | None = None
    """URL of the Kubeflow Pipelines API, without a password; `http://127.0.0.1:8080` after a
    port-forward."""
    namespace: DnsLabel = "kubeflow"
    """Namespace of the runs, training jobs and InferenceServices."""
    service_account: DnsName | None = None
    """Kubernetes service account of the steps and the training pods; None: the default account."""
    volume: Volume | None = None
    """PersistentVolumeClaim that every step mounts, for data outside of buckets."""
    training_job: JobKindName = "auto"
    """Kind of the Kubernetes object that runs a training on several machines: `tfjob` (training
    operator v1), `trainjob` (Trainer v2, with the runtime of `kubeflow/training.yaml`), `jobset`
    (JobSet alone), or `auto`, a TFJob if the cluster has the training operator, else a JobSet."""
    queue: DnsLabel | None = None
    """LocalQueue of Kueue that admits the training; None: no queue."""
    training_pod: dict[str, Any] = {}
    """Fields of the spec of every training pod, with their names in Kubernetes: `nodeSelector`,
    `tolerations`, `priorityClassName` (for a TrainJob in `kubeflow/training.yaml` instead),
    `terminationGracePeriodSeconds` (60 by default; the time for a last checkpoint)."""

    @field_validator("training_pod")
    @classmethod
    def _has_no_field_of_the_job(cls, value: dict[str, Any]) -> dict[str, Any]:
        for name, reason in _OF_THE_JOB.items():
            if name in value:
                raise ValueError(f"{reason}; remove {name}")
        return value

    # Not a validator of the field, whose message would contain the password.
    @model_validator(mode="after")
    def _endpoint_has_no_password(self) -> Kubeflow:
        if self.endpoint and has_password(self.endpoint):
            raise ValueError(
                "endpoint: the URL contains a password; remove it, and set "
                "KF_PIPELINES_SA_TOKEN_PATH to a file with a token instead"
            )
        return self


LOCAL = "[local]"
"""The value of `master` with which Flink starts inside of the job server."""


def _check_address(address: str) -> str:
    found = re.fullmatch(r"[A-Za-z0-9.-]+:([0-9]{1,5})", address)
    if not found or not 0 < int(found[1]) < 2**16:
        raise ValueError("must be HOST:PORT without http://, with a port of at most 65535")
    return address


Address = Annotated[str, AfterValidator(_check_address)]
"""`HOST:PORT`."""


class Flink(Section):
    """Apache Flink, for `beam.runner: flink`."""

    master: str = LOCAL
    """REST address of a Flink cluster, `HOST:PORT`; `[local]` starts Flink inside the job
    server."""
    job_endpoint: Address | None = None
    """`HOST:PORT` of a running Beam job server; None: the run starts one, which requires Java and
    the jars of `make flink`."""
    jars: LocalPath | None = None
    """Folder with the jars of `make flink`; None: `.cache/flink/lib` of this checkout."""
    parallelism: PositiveInt = 2
    """Number of slots that a job uses. Each slot requires a core of its own: on two cores a job
    took as long with two slots as with one, because one worker already uses both cores."""
    worker_pool: Address = "localhost:50000"
    """Address at which each TaskManager reaches the pool of Python workers next to it. With
    `[local]` the workers are threads of the component."""
    shared_paths: bool = False
    """Whether the TaskManagers share the file system of this machine. A remote cluster without a
    shared file system requires `gs://` or another object store."""
    timeout_seconds: PositiveInt = 1800
    """Seconds without progress of any task after which the job is cancelled. The timeout must be
    longer than the longest unit of work, which is a whole file for gzip and zstd."""

    @field_validator("master", mode="before")
    @classmethod
    def _brackets_are_no_list(cls, value: Any) -> Any:
        # YAML reads [local] without quotes as a list.
        return LOCAL if value == ["local"] else value

    @field_validator("master")
    @classmethod
    def _master_is_local_or_an_address(cls, master: str) -> str:
        try:
            return master if master == LOCAL else _check_address(master)
        except ValueError as error:
            raise ValueError(f"{error}, or {LOCAL}") from None

    @property
    def on_this_machine(self) -> bool:
        """Whether Flink runs on this machine."""
        return self.master == LOCAL or self.master.startswith(("localhost:", "127.0.0.1:"))

    @model_validator(mode="after")
    def _a_job_server_has_a_cluster(self) -> Flink:
        if self.job_endpoint and self.master == LOCAL:
            raise ValueError(
                "job_endpoint requires the REST address of its Flink cluster; set master to "
                "HOST:PORT"
            )
        return self
