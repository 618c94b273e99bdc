"""Settings that only clusters need: image, resources, Vertex AI, Kubeflow, Dataflow."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator

from core.settings import PositiveInt, Section

Quantity = Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+)?([kMGTP]|[KMGTP]i)?$")]
"""A Kubernetes quantity of bytes: `16G`, `512Mi`."""


class Resources(Section):
    """What a step's container may use; None: whatever the cluster gives."""

    cpu: Annotated[float, Field(gt=0)] | None = None
    memory: Quantity | None = None
    gpus: Annotated[int, Field(ge=0)] = 0
    gpu_type: str | None = None
    """Vertex AI: the accelerator type, `NVIDIA_TESLA_T4`; Kubernetes: the resource, None for
    `nvidia.com/gpu`."""


class Cluster(Section):
    """What every cluster is told."""

    image: str | None = None
    """The image with this package that every step runs in, `HOST/PROJECT/amazon-reviews:TAG`."""
    resources: dict[str, Resources] = {}
    """Component -> what its container may use; `Trainer`: each process that trains."""

    @field_validator("resources")
    @classmethod
    def _components_exist(cls, value: dict[str, Resources]) -> dict[str, Resources]:
        for name in value:
            if name not in COMPONENTS:
                raise ValueError(f"no component {name}; known are {', '.join(COMPONENTS)}")
        return value


COMPONENTS = (
    "ReviewExampleGen",
    "ReviewSchemaGen",
    "StatisticsGen",
    "ExampleValidator",
    "DataGate",
    "Transform",
    "Tuner",
    "Trainer",
    "Evaluator",
    "Pusher",
)
BeamComponent = Literal["ReviewExampleGen", "StatisticsGen", "Transform", "Evaluator"]


class Dataflow(Section):
    """Google Cloud Dataflow, for `beam.runner: dataflow`."""

    project: str | None = None
    region: str | None = None
    """None, as for the project: that of `vertex`."""
    temp_location: str | None = None
    """gs:// folder for what Dataflow stages; None: `tmp` under `paths.root`."""
    service_account: str | None = None
    machine_type: str | None = None
    max_workers: PositiveInt | None = None
    components: list[BeamComponent] = ["ReviewExampleGen", "StatisticsGen", "Transform"]
    """Those that run there; the others run in their own container."""


class Vertex(Section):
    """Vertex AI Pipelines, for `--target vertex`."""

    project: str | None = None
    region: str | None = None
    service_account: str | None = None
    """Account that the steps run as; None: the project's default."""
    network: str | None = None
    """VPC to peer with, `projects/NUMBER/global/networks/NAME`."""
    machine_type: str = "n1-standard-8"
    """Of each training replica when `training.workers` is more than 1."""
    training_timeout_hours: Annotated[float, Field(gt=0)] = 24.0
    """A CustomJob that takes longer, with its time in the queue, is ended, and the step fails."""
    endpoint: str | None = None
    """Display name of the endpoint that `push.destination: vertex` deploys to, which serves nothing
    else; None: `name`."""
    serving_image: str | None = None
    """TensorFlow Serving, in a registry of the project, for `push.destination: vertex`."""


class Volume(Section):
    """A PersistentVolumeClaim that all steps mount, for what need not be in a bucket."""

    claim: Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")]
    mount: Annotated[str, Field(pattern=r"^/.+")]


class Toleration(Section):
    """A Kubernetes toleration of a node's taint."""

    key: str | None = None
    operator: Literal["Equal", "Exists"] = "Equal"
    value: str | None = None
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None


class Kubeflow(Section):
    """Kubeflow Pipelines, for `--target kubeflow`."""

    endpoint: str | None = None
    """URL of the Kubeflow Pipelines API, `http://127.0.0.1:8080` after a port-forward."""
    namespace: str = "kubeflow"
    """Where the runs' pods live, and the TFJobs and InferenceServices that are made."""
    experiment: str = "amazon-reviews"
    service_account: str | None = None
    """Kubernetes service account of the steps and the training pods; None: the default one."""
    volume: Volume | None = None
    node_selector: dict[str, str] = {}
    """Of the training pods."""
    tolerations: list[Toleration] = []
    """Of the training pods."""
    training_timeout_hours: Annotated[float, Field(gt=0)] = 24.0
    """A TFJob that takes longer is ended, and the step fails."""
    refused_timeout_minutes: Annotated[float, Field(gt=0)] = 10.0
    """A TFJob whose pods are refused for that long, for a reason that does not pass by itself, is
    ended, and the step fails."""
