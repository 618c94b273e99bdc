"""Values that synchronous training processes exchange in addition to gradients."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import tensorflow as tf
from absl import logging

from trainer_module.cluster.tf_config import Cluster

_SECONDS_BEFORE_LOG = 10.0


@contextlib.contextmanager
def waiting_for(whom: str) -> Iterator[None]:
    """Log that this process waits for `whom` if the context lasts more than a few seconds."""
    log = threading.Timer(_SECONDS_BEFORE_LOG, logging.info, ["Waiting for %s", whom])
    log.daemon = True
    log.start()
    try:
        yield
    finally:
        log.cancel()


class Collective:
    """Collective sums over the processes; all of them must call a method at the same point.

    Under any strategy but MultiWorkerMirroredStrategy this process is the only one.

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
        return self.processes > 1

    def sum(self, here: tf.Tensor) -> tf.Tensor:
        """Return the sum of `here` over all processes; shape and floating-point dtype are equal."""
        return self._sum(here) if self.needed else here

    def any(self, here: bool) -> bool:
        """Return whether `here` is true in any process."""
        return bool(self.sum(tf.constant(float(here))) > 0)

    def wait_for_all(self) -> None:
        """Block until every process has called this method; then each of them may end.

        Raises:
          tf.errors.OpError: a process ended before it called this method.
        """
        with waiting_for(f"the other {self.processes - 1} of {self.processes} worker processes"):
            self.any(True)
        # A process that has the result may still have to send its part to another process. No
        # process completes a second sum before all have the result of the first sum, so after the
        # second sum each process may end. The second sum fails if another process has already
        # ended.
        with contextlib.suppress(tf.errors.OpError):
            self.any(True)

    @tf.function(autograph=False)
    def _sum(self, here: tf.Tensor) -> tf.Tensor:
        replicas_here = self._strategy.num_replicas_in_sync // self.processes

        def of_replica(value: tf.Tensor) -> tf.Tensor:
            # Only the first replica of a process contributes the value.
            replica = tf.distribute.get_replica_context().replica_id_in_sync_group
            return tf.where(tf.equal(replica % replicas_here, 0), value, tf.zeros_like(value))

        from_replicas = self._strategy.run(of_replica, args=(here,))
        return self._strategy.reduce(tf.distribute.ReduceOp.SUM, from_replicas, axis=None)
