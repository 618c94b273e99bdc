"""What the processes that train in step tell each other beside gradients."""

from __future__ import annotations

import tensorflow as tf


class Agreement:
    """Sums a number over all processes; each of them has to ask at the same point.

    Where the strategy is not a MultiWorkerMirroredStrategy there is nobody to ask.
    """

    def __init__(self, strategy: tf.distribute.Strategy):
        self._strategy = strategy
        self.needed = isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy) and (
            strategy.num_replicas_in_sync > 1
        )

    def any(self, here: bool) -> bool:
        """Whether it is true in any process."""
        if not self.needed:
            return here
        return bool(self._sum(tf.constant(float(here))) > 0)

    def wait_for_all(self) -> None:
        """Returns when every process has come here; raises when one of them died."""
        self.any(True)

    @tf.function(autograph=False)
    def _sum(self, here: tf.Tensor) -> tf.Tensor:
        from_replicas = self._strategy.run(tf.identity, args=(here,))
        return self._strategy.reduce(tf.distribute.ReduceOp.SUM, from_replicas, axis=None)
