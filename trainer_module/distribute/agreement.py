"""What the processes that train in step tell each other beside gradients."""

from __future__ import annotations

import contextlib

import tensorflow as tf

from trainer_module.distribute.cluster import Cluster


class Agreement:
    """Sums over all processes; each of them has to ask at the same point.

    Where the strategy is not a MultiWorkerMirroredStrategy there is nobody to ask.

    Attributes:
      processes: how many train in step.
      process: which of them this one is, from 0 on.
    """

    def __init__(self, strategy: tf.distribute.Strategy, cluster: Cluster | None):
        self._strategy = strategy
        self.processes, self.process = 1, 0
        if cluster and isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
            self.processes, self.process = cluster.workers, cluster.worker_number

    @property
    def needed(self) -> bool:
        """Whether there is anybody else."""
        return self.processes > 1

    def sum(self, here: tf.Tensor) -> tf.Tensor:
        """The sum of what each process gives, of one shape and floating-point dtype."""
        return self._sum(here) if self.needed else here

    def any(self, here: bool) -> bool:
        """Whether it is true in any process."""
        return bool(self.sum(tf.constant(float(here))) > 0)

    def wait_for_all(self) -> None:
        """Return when every process has come here, after which each of them may end.

        Raises:
          tf.errors.OpError: one of them died before it came here.
        """
        self.any(True)
        # A process that has the sum may still have to send its part of it to another one. None
        # gets to the end of a second sum before all have the first, so that each may end then;
        # the second one fails where a process has ended already.
        with contextlib.suppress(tf.errors.OpError):
            self.any(True)

    @tf.function(autograph=False)
    def _sum(self, here: tf.Tensor) -> tf.Tensor:
        replicas_here = self._strategy.num_replicas_in_sync // self.processes

        def of_replica(value: tf.Tensor) -> tf.Tensor:
            # A process speaks once, through its first replica.
            replica = tf.distribute.get_replica_context().replica_id_in_sync_group
            return tf.where(tf.equal(replica % replicas_here, 0), value, tf.zeros_like(value))

        from_replicas = self._strategy.run(of_replica, args=(here,))
        return self._strategy.reduce(tf.distribute.ReduceOp.SUM, from_replicas, axis=None)
