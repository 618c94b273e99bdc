"""TF_CONFIG: the cluster of this process, read and checked without TensorFlow."""

from __future__ import annotations

import json
import re
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

VARIABLE = "TF_CONFIG"
CHIEF, WORKER, PS = "chief", "worker", "ps"

_EXAMPLE = (
    '{"cluster": {"worker": ["host0:2222", "host1:2222"]}, "task": {"type": "worker", "index": 0}}'
)
_REFUSED = {
    "master": "this is TensorFlow 1's name; use chief",
    "evaluator": "training evaluates after every epoch without such a task; remove it",
}
_ADDRESS = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):([0-9]{1,5})")
_LAST_PORT = 65535
_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 80
_MOST_CHARACTERS = 120


@dataclass(frozen=True)
class Cluster:
    """A cluster and the task of this process in it.

    Attributes:
      spec: task type (`chief`, `worker`, `ps`) -> `host:port` of each task of that type; no empty
        lists.
      task_type, task_index: the task of this process.
    """

    spec: dict[str, list[str]]
    task_type: str
    task_index: int

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> Cluster | None:
        """Return the cluster of `environ['TF_CONFIG']`; None without a cluster.

        There is no cluster if the variable is not set, empty or `{}`, if the cluster is empty, or
        if it has a single task. TFJob and Vertex AI set a cluster of one task for a single replica.

        Raises:
          ValueError: TF_CONFIG is malformed; the message is one line.
        """
        text = environ.get(VARIABLE, "")
        if not text.strip():
            return None
        config = _parse(text)
        if not config:
            return None
        spec = _spec(config)
        if not spec:
            return None
        task_type, task_index = _task(config, spec)
        if sum(map(len, spec.values())) == 1 and PS not in spec:
            return None
        _check_roles(spec)
        return cls(spec, task_type, task_index)

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
    def address(self) -> str:
        """The host:port of this process."""
        return self.spec[self.task_type][self.task_index]

    @property
    def processes(self) -> int:
        """The number of all tasks."""
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


def _parse(text: str) -> dict[str, Any]:
    try:
        config = json.loads(text)
    # Python's parser fails if a number has thousands of digits, or a thousand brackets are nested.
    except (ValueError, RecursionError):
        raise _error(f"not JSON: {_short(text)}; a correct value is {_EXAMPLE}") from None
    if not isinstance(config, dict):
        raise _error(f"{_short(config)} is not a mapping; a correct value is {_EXAMPLE}")
    return config


def _spec(config: dict[str, Any]) -> dict[str, list[str]]:
    cluster = config.get("cluster")
    if not isinstance(cluster, dict):
        seen = f"cluster is {_short(cluster)}" if "cluster" in config else "no cluster"
        raise _error(f"{seen}; a correct value is {_EXAMPLE}")
    owners: dict[str, str] = {}
    for kind, addresses in cluster.items():
        _check_type(kind, "cluster")
        if not isinstance(addresses, list):
            raise _error(f"cluster.{kind} is {_short(addresses)}, not a list of host:port")
        for index, address in enumerate(addresses):
            _check_address(address, f"cluster.{kind}[{index}]")
            if address in owners:
                raise _error(
                    f"{owners[address]} and {kind} {index} have the same address {address}"
                )
            owners[address] = f"{kind} {index}"
    return {kind: list(addresses) for kind, addresses in cluster.items() if addresses}


def _check_type(kind: Any, where: str) -> None:
    if not isinstance(kind, str) or kind not in (CHIEF, WORKER, PS):
        reason = _REFUSED.get(kind) if isinstance(kind, str) else None
        why = reason or f"known types are {CHIEF}, {WORKER} and {PS}"
        raise _error(f"{where}: unknown task type {_short(kind)}; {why}")


def _check_address(address: Any, where: str) -> None:
    found = _ADDRESS.fullmatch(address) if isinstance(address, str) else None
    if not found or not 1 <= int(found[1]) <= _LAST_PORT:
        raise _error(f"{where} is {_short(address)}, not host:port")


def _task(config: dict[str, Any], spec: dict[str, list[str]]) -> tuple[str, int]:
    task = config.get("task")
    if not isinstance(task, dict) or not {"type", "index"} <= set(task):
        raise _error(
            f"task is {_short(task)}; "
            'it must be the task of this process, such as {"type": "worker", "index": 0}'
        )
    kind, index = task["type"], task["index"]
    _check_type(kind, "task.type")
    # In job templates of Vertex AI and TFJob the index is a string.
    if isinstance(index, str) and re.fullmatch("[0-9]{1,6}", index):
        index = int(index)
    if not isinstance(index, int) or isinstance(index, bool) or index < 0:
        raise _error(f"task.index is {_short(index)}, not a whole number from 0")
    count = len(spec.get(kind, []))
    if index >= count:
        known = ", ".join(f"{len(found)} {known} from 0" for known, found in spec.items())
        raise _error(f"task {kind} {_short(index)} is not in the cluster, which has {known}")
    return kind, index


def _check_roles(spec: dict[str, list[str]]) -> None:
    chiefs = len(spec.get(CHIEF, []))
    if chiefs > 1:
        raise _error(
            f"{chiefs} chiefs; a cluster has at most one; if it has none, worker 0 is the chief"
        )
    if PS in spec and not (chiefs and WORKER in spec):
        missing = WORKER if chiefs else CHIEF
        raise _error(f"ps tasks but no {missing}; ps tasks need a chief and at least one worker")


def _short(value: Any) -> str:
    """Return a value in one short line, however large or deep it is."""
    text = _SHORT.repr(value)
    return text if len(text) <= _MOST_CHARACTERS else text[:_MOST_CHARACTERS] + "..."


def _error(problem: str) -> ValueError:
    return ValueError(f"{VARIABLE}: {problem}")
