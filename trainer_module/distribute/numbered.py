"""TF_CONFIG for a process that knows its number in the cluster, as in the pods of a TrainJob."""

from __future__ import annotations

import json
from collections.abc import Mapping, MutableMapping

from trainer_module.distribute import cluster

CLUSTER_VARIABLE = "TRAINING_CLUSTER"
"""The addresses of all tasks as JSON: `{"chief": ["host0:2222"], "worker": ["host1:2222"]}`."""
INDEX_VARIABLE = "POD_INDEX"
"""The number of this process; 0 is the first task of the first type in CLUSTER_VARIABLE."""


def set_tf_config(environ: MutableMapping[str, str]) -> None:
    """Set TF_CONFIG in `environ` if it has CLUSTER_VARIABLE, with more than one task.

    Raises:
      ValueError: a variable is malformed; the message is one line.
    """
    if CLUSTER_VARIABLE not in environ:
        return
    text, number = environ[CLUSTER_VARIABLE], environ.get(INDEX_VARIABLE, "")
    try:
        spec = json.loads(text)
        task, index = task_of({kind: len(addresses) for kind, addresses in spec.items()}, number)
    except (ValueError, LookupError, TypeError, AttributeError):
        raise ValueError(
            f"{CLUSTER_VARIABLE} and {INDEX_VARIABLE}: {number!r} is not the number of a task of "
            f"{text[:200]}"
        ) from None
    if sum(map(len, spec.values())) == 1:
        return
    config = {"cluster": spec, "task": {"type": task, "index": index}}
    environ[cluster.VARIABLE] = json.dumps(config)


def task_of(counts: Mapping[str, int], number: int | str) -> tuple[str, int]:
    """Return type and index of the task with a number: `{"chief": 1, "worker": 2}, 2` -> worker 1.

    Raises:
      ValueError: `number` is not an integer.
      LookupError: there is no such task.
    """
    tasks = [(kind, index) for kind, count in counts.items() for index in range(count)]
    if int(number) < 0:
        raise LookupError(number)
    return tasks[int(number)]
