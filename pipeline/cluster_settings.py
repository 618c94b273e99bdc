"""Settings that only clusters need: image, resources, Vertex AI, Kubeflow, Dataflow."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator

from core.settings import PositiveInt, Section

Quantity = Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+)?([kMGTP]|[KMGTP]i)?$")]
"""A Kubernetes quantity of bytes: `16G`, `512Mi`."""


class Resources(Section):
    """The resources of a step's container; None: the cluster's default."""

    cpu: Annotated[float, Field(gt=0)] | None = None
    memory: Quantity | None = None
    gpus: Annotated[int, Field(ge=0)] = 0
    gpu_type: str | None = None
    """Vertex AI: the accelerator type, `NVIDIA_TESLA_T4`; Kubernetes: the resource, None for
    `nvidia.com/gpu`."""


class Cluster(Section):
    """Settings for every cluster."""

    image: str | None = None
    """The image with this package that every step runs in, `HOST/PROJECT/amazon-reviews:TAG`."""
    resources: dict[str, Resources] = {}
    """Component -> the resources of its container; `Trainer`: those of each training process."""

    @field_validator("resources")
    @classmethod
    def _components_exist(cls, value: dict[str, Resources]) -> dict[str, Resources]:
        for name in value:
            if name not in COMPONENTS:
                raise ValueError(f"unknown component {name}; known are {', '.join(COMPONENTS)}")
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
    """None: `vertex.region`; a `project` of None: `vertex.project`."""
    temp_location: str | None = None
    """gs:// folder for Dataflow's temporary files; None: `tmp` under `paths.root`."""
    service_account: str | None = None
    machine_type: str | None = None
    max_workers: PositiveInt | None = None
    components: list[BeamComponent] = ["ReviewExampleGen", "StatisticsGen", "Transform"]
    """The components that run on Dataflow; each other one runs in its own container."""


class Vertex(Section):
    """Vertex AI Pipelines, for `--target vertex`."""

    project: str | None = None
    region: str | None = None
    service_account: str | None = None
    """Account that the steps run as; None: the project's default."""
    network: str | None = None
    """VPC to peer with, `projects/NUMBER/global/networks/NAME`."""
    machine_type: str = "n1-standard-8"
    """Machine type of each training replica if `training.workers` is more than 1."""
    training_timeout_hours: Annotated[float, Field(gt=0)] = 24.0
    """Hours after which a CustomJob is cancelled and its step fails; includes the queue time."""
    endpoint: str | None = None
    """Display name of the endpoint for `push.destination: vertex`; it serves no other model. None:
    `name`."""
    serving_image: str | None = None
    """Image of TensorFlow Serving, in a registry of the project, for `push.destination: vertex`."""


class Volume(Section):
    """A PersistentVolumeClaim that all steps mount, for data outside a bucket."""

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
    """Namespace of the pods of runs, and of the TFJobs and InferenceServices."""
    experiment: str = "amazon-reviews"
    service_account: str | None = None
    """Kubernetes service account of the steps and the training pods; None: the default one."""
    volume: Volume | None = None
    node_selector: dict[str, str] = {}
    """Node labels that the training pods require."""
    tolerations: list[Toleration] = []
    """Tolerations of the training pods."""
    training_timeout_hours: Annotated[float, Field(gt=0)] = 24.0
    """Hours after which a TFJob is deleted and its step fails."""
    refused_timeout_minutes: Annotated[float, Field(gt=0)] = 10.0
    """Minutes after which a TFJob is deleted and its step fails, if Kubernetes refuses its pods for
    a reason that lasts, such as a missing service account."""
