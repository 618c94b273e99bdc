"""The loss of another process of the cluster, told apart from an error of this process.

A process that lost a peer is not at fault: the training continues from its last checkpoint once
the processes of the cluster have been restarted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainer_module.distribute.cluster import Cluster

EXIT_CODE = 138
"""Exit code of a process that lost a peer: 128 + SIGUSR1, which Kubeflow's training operator
reserves for the errors after which a program asks to be restarted."""

_TYPES = frozenset(("UnavailableError", "AbortedError", "DeadlineExceededError", "CancelledError"))
"""TensorFlow's errors that are never about the program, its settings or its data. Object storage
that does not answer raises them too, and a restart is right for that as well."""
_RESTARTED = re.compile(
    # Errors of other types, after a peer was restarted before this process noticed its end.
    r"incarnation|worker was restarted|[Tt]ask .* has restarted|Connection reset by peer"
    r"|Socket closed|[Hh]eartbeat"
)
_REMOTE = "Additional GRPC error information from remote target"


def is_lost_peer(error: BaseException, cluster: Cluster | None) -> bool:
    """Return whether a training failed because another process of its cluster is gone.

    Args:
      error: what the training raised; its causes are considered too.
      cluster: the cluster of this process; a process without a cluster has no peer to lose.
    """
    return cluster is not None and any(_tells_of_a_loss(each, cluster) for each in _chain(error))


def _tells_of_a_loss(error: BaseException, cluster: Cluster) -> bool:
    if any(each.__name__ in _TYPES for each in type(error).__mro__):
        return type(error).__module__.startswith("tensorflow")
    message = str(error)
    if _RESTARTED.search(message):
        return True
    # In a collective, an error of a peer ends this process too. The peer ends with an exit code of
    # its own, which decides. Workers beside parameter servers do not end with their errors: there
    # the coordinator's exit code has to tell.
    return _REMOTE in message and not cluster.has_parameter_servers


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
