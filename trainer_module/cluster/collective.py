"""Collective operations of synchronous training processes: sums, and votes about SIGTERM.

TensorFlow's PreemptionCheckpointHandler does not replace them. It refuses clusters with parameter
servers, does nothing on Google Cloud with CPUs or TPUs, sends an HTTP request to the metadata
server when it is created, starts from scratch if the list of checkpoints is damaged, and counts
calls of the compiled function instead of steps.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator

import tensorflow as tf
from absl import logging

from trainer_module.cluster.tf_config import Cluster

_SECONDS_BEFORE_LOG = 10.0
_SECONDS_BETWEEN_VOTES = 1.0
_MAX_STEPS_BETWEEN_VOTES = 16
"""A vote costs about as much as a small step."""


@contextlib.contextmanager
def waiting_for(whom: str) -> Iterator[None]:
    """Log that this process is waiting if the context lasts longer than 10 seconds.

    Args:
      whom: the processes or the step for which it waits, for the line `Waiting for …`.
    """
    log = threading.Timer(_SECONDS_BEFORE_LOG, logging.info, ["Waiting for %s", whom])
    log.daemon = True
    log.start()
    try:
        yield
    finally:
        log.cancel()


class Collective:
    """Collective sums over the processes that train synchronously.

    Every one of these processes calls a method at the same point of the training. All methods raise
    tensorflow.errors.OpError if another process is gone.

    Args:
      strategy: the strategy of the training.
      cluster: the cluster of this process; None: it trains alone.

    Attributes:
      processes: the number of processes that train synchronously.
      process: the number of this process, from 0.
    """

    def __init__(self, strategy: tf.distribute.Strategy, cluster: Cluster | None):
        self._strategy = strategy
        self.processes, self.process = 1, 0
        if cluster and isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
            self.processes, self.process = cluster.workers, cluster.worker_number

    @property
    def needed(self) -> bool:
        """Whether there are other processes."""
        return self.processes > 1

    def sum(self, here: tf.Tensor) -> tf.Tensor:
        """Return the sum of a tensor over all processes.

        Args:
          here: the tensor of this process. Its shape and its floating-point dtype are the same in
            all processes.
        """
        return self._sum(here) if self.needed else here

    def any(self, here: bool) -> bool:
        """Return whether `here`, the value of each process, is true in any of them."""
        return bool(self.sum(tf.constant(float(here))) > 0)

    def wait_for_all(self) -> None:
        """Block until every process has called this method."""
        with waiting_for(f"the other {self.processes - 1} of {self.processes} worker processes"):
            self.any(True)
        # A process with the result of the first sum may not have sent its part to all others yet.
        # No process completes the second sum before all have the result of the first one. The
        # second sum fails if another process has already ended.
        with contextlib.suppress(tf.errors.OpError):
            self.any(True)

    @tf.function(autograph=False)
    def _sum(self, here: tf.Tensor) -> tf.Tensor:
        replicas_here = self._strategy.num_replicas_in_sync // self.processes

        def contribution(value: tf.Tensor) -> tf.Tensor:
            # Only the first replica of a process contributes the value.
            replica = tf.distribute.get_replica_context().replica_id_in_sync_group
            return tf.where(tf.equal(replica % replicas_here, 0), value, tf.zeros_like(value))

        from_replicas = self._strategy.run(contribution, args=(here,))
        return self._strategy.reduce(tf.distribute.ReduceOp.SUM, from_replicas, axis=None)


class PreemptionSync:
    """Collective votes about whether any of the synchronous processes has received SIGTERM.

    The number of steps until the next vote is computed from the sum of the step times of all
    processes, so it is the same in all of them.

    Args:
      collective: sums over the processes.
    """

    def __init__(self, collective: Collective):
        self._requested = False
        self._collective = collective
        self._steps_between = 1
        self._steps = 0
        self._since = time.perf_counter()

    def request(self, number: signal.Signals) -> None:
        """Vote for the end of the training from now on.

        Args:
          number: the signal that this process has received; a handler for `core.processes`.
        """
        self._requested = True

    def after_step(self) -> bool:
        """Count a training step, and return whether to end the training.

        Most calls do not vote, and return False.

        Raises:
          tensorflow.errors.OpError: another process is gone.
        """
        self._steps += 1
        return self._steps >= self._steps_between and self.now()

    def now(self) -> bool:
        """Vote, and return whether to end the training.

        Raises:
          tensorflow.errors.OpError: another process is gone.
        """
        if not self._collective.needed:
            return self._requested
        seconds = (time.perf_counter() - self._since) / max(1, self._steps)
        requests, total_seconds = self._collective.sum(
            tf.constant([float(self._requested), seconds])
        ).numpy()
        processes = self._collective.processes
        steps = _SECONDS_BETWEEN_VOTES * processes / max(1e-9, float(total_seconds))
        self._steps_between = int(min(max(1.0, steps), _MAX_STEPS_BETWEEN_VOTES))
        self._steps = 0
        self._since = time.perf_counter()
        return bool(requests > 0)

    def wait_for_all(self) -> None:
        """Block until every process has called this method, or one of them has ended.

        A process that ended right after a vote could not send its part of the vote to the others.
        They would fail instead of saving a checkpoint.
        """
        if self._collective.needed:
            with contextlib.suppress(tf.errors.OpError):
                self._collective.wait_for_all()
