"""TF_CONFIG: the cluster of this process, read and checked without TensorFlow."""

from __future__ import annotations

import json
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, NonNegativeInt, ValidationError

from core.settings import first_problem

VARIABLE = "TF_CONFIG"
CHIEF, WORKER, PS = "chief", "worker", "ps"
CLUSTER_VARIABLE = "TRAINING_CLUSTER"
"""The variable with the addresses of all tasks as JSON, such as `{"chief": ["host0:2222"],
"worker": ["host1:2222"]}`. The pods of a TrainJob have it instead of TF_CONFIG."""
INDEX_VARIABLE = "POD_INDEX"
"""The variable with the number of this process; 0 is the first task of the first type in
CLUSTER_VARIABLE."""

_EXAMPLE = (
    '{"cluster": {"worker": ["host0:2222", "host1:2222"]}, "task": {"type": "worker", "index": 0}}'
)

_TaskType = Literal["chief", "worker", "ps"]


class _Task(BaseModel):
    """The task of a process. In job templates of Vertex AI and TFJob the index is a string."""

    type: _TaskType
    index: NonNegativeInt


class _TfConfig(BaseModel):
    cluster: dict[_TaskType, list[str]]
    task: _Task | None = None


@dataclass(frozen=True)
class Cluster:
    """A cluster and the task of this process in it."""

    spec: dict[str, list[str]]
    """Task type -> `host:port` of each task of that type, without empty lists."""
    task_type: str
    task_index: int

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> Cluster | None:
        """Return the cluster of `environ['TF_CONFIG']`; None without a cluster, or with one task.

        TFJob and Vertex AI set a cluster of one task for a single replica.

        Args:
          environ: the environment of this process.

        Raises:
          ValueError: the value is not a cluster with this process.
        """  # noqa: DOC501
        text = environ.get(VARIABLE, "").strip()
        if text in ("", "{}"):
            return None
        try:
            config = _TfConfig.model_validate_json(text)
        except ValidationError as error:
            problem = first_problem(error, _TfConfig)
            raise _error(f"{problem}; a correct value is {_EXAMPLE}") from None
        spec = {str(kind): tasks for kind, tasks in config.cluster.items() if tasks}
        if not spec:
            return None
        if config.task is None:
            raise _error(f"no task of this process; a correct value is {_EXAMPLE}")
        cluster = cls(spec, config.task.type, config.task.index)
        if cluster.task_index >= len(spec.get(cluster.task_type, [])):
            known = ", ".join(f"{len(tasks)} {kind} from 0" for kind, tasks in spec.items())
            raise _error(f"task {cluster.name} is not in the cluster, which has {known}")
        if cluster.processes == 1 and PS not in spec:
            return None
        return cluster

    def to_json(self) -> str:
        """Return the value of TF_CONFIG for this cluster and task."""
        task = {"type": self.task_type, "index": self.task_index}
        return json.dumps({"cluster": self.spec, "task": task})

    @property
    def has_parameter_servers(self) -> bool:
        """Whether the cluster trains under `parameter_server`, with the chief as coordinator."""
        return PS in self.spec

    @property
    def chief(self) -> bool:
        """Whether this task is the one that writes the model and the logs."""
        return self.task_type == CHIEF or (
            CHIEF not in self.spec and self.task_type == WORKER and self.task_index == 0
        )

    @property
    def serves(self) -> bool:
        """Whether this task only executes requests of the coordinator, until it is ended."""
        return self.has_parameter_servers and self.task_type != CHIEF

    @property
    def name(self) -> str:
        """The name of this task, such as `worker 1` or `chief`."""
        return CHIEF if self.task_type == CHIEF else f"{self.task_type} {self.task_index}"

    @property
    def processes(self) -> int:
        """The number of all tasks, including parameter servers."""
        return sum(map(len, self.spec.values()))

    @property
    def workers(self) -> int:
        """The number of tasks that compute gradients, each on a part of the data."""
        workers = len(self.spec.get(WORKER, []))
        return workers if self.has_parameter_servers else workers + len(self.spec.get(CHIEF, []))

    @property
    def worker_number(self) -> int:
        """The number of this worker as tf.distribute counts workers: the chief is 0."""
        before = CHIEF in self.spec and self.task_type == WORKER and not self.has_parameter_servers
        return self.task_index + before


def set_tf_config(environ: MutableMapping[str, str]) -> None:
    """Set TF_CONFIG in `environ` if it has CLUSTER_VARIABLE, with more than one task.

    Raises:
      ValueError: the index is not the number of a task.
    """
    if CLUSTER_VARIABLE not in environ:
        return
    text, number = environ[CLUSTER_VARIABLE], environ.get(INDEX_VARIABLE, "")
    try:
        spec = json.loads(text)
        kind, index = find_task({kind: len(addresses) for kind, addresses in spec.items()}, number)
    except (ValueError, LookupError, TypeError, AttributeError):
        raise ValueError(
            f"{INDEX_VARIABLE}: {number!r} is not the number of a task in {CLUSTER_VARIABLE}: "
            f"{text}"
        ) from None
    cluster = Cluster(spec, kind, index)
    if cluster.processes > 1:
        environ[VARIABLE] = cluster.to_json()


def find_task(counts: Mapping[str, int], number: int | str) -> tuple[str, int]:
    """Return the type and the index of a task: `{"chief": 1, "worker": 2}, 2` -> worker 1.

    Args:
      counts: task type -> number of tasks.
      number: the number of the task, counted from 0 over all types.

    Raises:
      ValueError: `number` is not an integer.
      IndexError: there are fewer tasks.
    """
    tasks = [(kind, index) for kind, count in counts.items() for index in range(count)]
    return tasks[int(number)]


def _error(problem: str) -> ValueError:
    # A key of the value may contain a line break.
    return ValueError(f"{VARIABLE}: {' '.join(problem.split())}")
