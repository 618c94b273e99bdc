"""The end of a training process: after the loss of another process, or by SIGTERM.

A process that lost a peer is not the cause of the failure. The training continues from its last
checkpoint after a restart of the processes of the cluster.
"""

from __future__ import annotations

import os
import re
import signal
import threading
import traceback

from core.errors import chain
from trainer_module.cluster.tf_config import Cluster

LOST_PEER = 138
"""The exit code of a process that lost a peer: 128 + SIGUSR1. Kubeflow's training operator reserves
this code for errors that a restart can fix."""
ENDED_BY_SIGTERM = 128 + signal.SIGTERM
"""The exit code of a process ended by SIGTERM, by the convention of shells."""
RUN_AGAIN = "run again to continue from the last checkpoint"
"""The remedy for a training that ended before its model was exported."""

_TYPES = frozenset(("UnavailableError", "AbortedError", "DeadlineExceededError", "CancelledError"))
"""TensorFlow's errors that the program, its settings or its data never cause. An object storage
that does not respond raises them too; a restart is right in that case as well."""
_RESTARTED = re.compile(
    # Messages of errors of other types. TensorFlow raises them if a peer ends and is restarted
    # before this process has noticed the end.
    r"incarnation|worker was restarted|[Tt]ask .* has restarted|Connection reset by peer"
    r"|Socket closed|[Hh]eartbeat"
    # TensorFlow's coordinator also takes the last three for a restart. It raises one of them if a
    # parameter server and a worker end together: it waits for both, and then the server has no
    # variables.
    r"|relevant tensor remote_handle|unknown device|Primary device is not remote"
)
_OURS = ("trainer_module", "examples", "preprocessing", "core", "__main__")
"""Packages whose errors have messages for users; `__main__` is `trainer_module.task`."""
_REMOTE = "Additional GRPC error information from remote target"


def is_lost_peer(error: BaseException, cluster: Cluster | None) -> bool:
    """Return whether a training failed because another process of its cluster is gone.

    Args:
      error: the error of the training. Its causes are inspected too.
      cluster: the cluster of this process; None: it trains alone, and no process can be gone.
    """
    return cluster is not None and any(_indicates_loss(each, cluster) for each in chain(error))


def _indicates_loss(error: BaseException, cluster: Cluster) -> bool:
    if any(each.__name__ in _TYPES for each in type(error).__mro__):
        return type(error).__module__.startswith("tensorflow")
    # The message of such an error may name a file of the user, whose path may contain any word.
    if is_self_explanatory(error):
        return False
    message = str(error)
    if _RESTARTED.search(message):
        return True
    # In a collective operation, an error of a peer ends this process too. Then the exit code of the
    # peer indicates the cause. Under parameter servers a worker does not end after an error, so the
    # exit code of the coordinator must indicate it.
    return _REMOTE in message and not cluster.has_parameter_servers


def is_self_explanatory(error: BaseException) -> bool:
    """Return whether the message of an error is enough for a user, without the traceback.

    This is true for the project's own exceptions, and for a ValueError that the project's own code
    raised. A ValueError from a library may have any cause.

    Args:
      error: an exception that was raised, with its traceback.
    """
    if type(error).__module__.split(".")[0] in _OURS:
        return True
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    if not isinstance(error, ValueError) or not frames:
        return False
    return frames[-1].f_globals["__name__"].split(".")[0] in _OURS


def end_at_sigterm() -> None:
    """Let SIGTERM end this process, even if its main thread is inside a library.

    Call this in the main thread before TensorFlow is imported. Python runs no handler while the
    main thread is inside TensorFlow, and a parameter server never leaves TensorFlow. The collective
    operations of TensorFlow replace the handler by one that only sets a flag. For process 1 of a
    container, Linux ignores signals without a handler. Therefore all threads block the signal, and
    a thread waits for it. It calls the handler of `core.processes.signals_to`, if there is one. The
    thread needs the GIL, which the constructor of MultiWorkerMirroredStrategy holds until all have
    connected.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    threading.Thread(target=_wait_for_sigterm, daemon=True).start()


def _wait_for_sigterm() -> None:
    while True:
        signal.sigwait([signal.SIGTERM])
        handler = signal.getsignal(signal.SIGTERM)
        if not callable(handler):
            os._exit(ENDED_BY_SIGTERM)
        handler(signal.SIGTERM, None)
