"""Steps beside parameter servers: each is scheduled together with its data.

Keras gives every worker a dataset of its own, and a step to whichever worker is free: what an epoch
reads, or an evaluation counts, then depends on how fast the workers are, and a worker that comes
back begins its dataset again. Here the coordinator reads the split once, in one order, and sends
each step its batches. A step that is repeated, because its worker was lost, has the same batches; a
training that goes on skips what the steps before it had.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from trainer_module.loop import metrics

_STEPS_AHEAD = (2, 8)
"""Steps of each worker that are read before they are taken: memory is bounded, and a worker that is
this many times slower than the others does not keep them waiting. With two no worker is ever idle;
there are more as long as all of them together are no more than _SECONDS_AHEAD."""
_SECONDS_AHEAD = 1.0
"""Of work, which a training that is told to end has to wait for before it can save."""


class Scheduled:
    """Takes steps on the workers; their sums are added up here, each exactly once.

    Args:
      step: a batch of a replica -> `metrics.sums` of it.
      strategy: with its workers.
      workers: how many they are.
    """

    def __init__(
        self,
        step: Callable[[Any], dict[str, tf.Tensor]],
        strategy: tf.distribute.ParameterServerStrategy,
        workers: int,
    ):
        self._step = step
        self._strategy = strategy
        self._coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
        self._workers = workers
        self._pending: deque[Any] = deque()
        self._function: Any = None
        self.reset()

    def reset(self) -> None:
        """Begins new sums."""
        self._totals: dict[str, Any] = {}
        self._loss = 0.0
        self._done = 0
        self._since = time.perf_counter()

    def __call__(self, data: Any, count: int) -> float:
        """Schedules `count` steps with batches from the iterator `data`, one for each replica of a
        worker; returns the mean loss of the last step that is known to be done."""
        if self._function is None:
            self._function = self._on_worker(data.element_spec)
        for _ in range(count):
            batches = tuple(next(data) for _ in range(self._strategy.num_replicas_in_sync))
            while len(self._pending) >= self._most_pending():
                self._collect()
            self._pending.append(self._coordinator.schedule(self._function, args=(batches,)))
        return self._loss

    def totals(self) -> dict[str, Any]:
        """What all steps since `reset` add up to, once they are done: name -> float64."""
        while self._pending:
            self._collect()
        return self._totals

    def means(self) -> dict[str, float]:
        """The same on average over the Examples."""
        return metrics.means(self.totals())

    def _most_pending(self) -> int:
        """How many steps may be scheduled and not done."""
        steps = _SECONDS_AHEAD * self._done / max(1e-9, time.perf_counter() - self._since)
        fewest, most = (self._workers * of_each for of_each in _STEPS_AHEAD)
        return int(min(max(fewest, steps), most))

    def _collect(self) -> None:
        """Adds the sums of the oldest step, which may have to be waited for."""
        try:
            of_step = self._pending.popleft().fetch()
        except tf.errors.CancelledError:
            # Another step failed, and this one was given up with it: that error tells more.
            self._coordinator.join()
            raise
        for name, values in of_step.items():
            # float64 counts beyond 2^24, where float32 ends.
            self._totals[name] = self._totals.get(name, 0.0) + values.astype(np.float64)
        total, examples = of_step["loss"]
        self._loss = float(total / max(examples, 1.0))
        self._done += 1

    def _on_worker(self, batch_spec: Any) -> Any:
        """The function that a worker runs: on each of its GPUs a batch, or one on its CPU."""
        strategy = self._strategy

        def function(batches: tuple[Any, ...]) -> dict[str, tf.Tensor]:
            def of_replica() -> dict[str, tf.Tensor]:
                replica = tf.distribute.get_replica_context().replica_id_in_sync_group
                return self._step(batches[int(tf.get_static_value(replica))])

            of_replicas = strategy.run(of_replica)
            return {
                name: strategy.reduce(tf.distribute.ReduceOp.SUM, values, axis=None)
                for name, values in of_replicas.items()
            }

        signature = ((batch_spec,) * strategy.num_replicas_in_sync,)
        return tf.function(function, input_signature=signature, autograph=False)
