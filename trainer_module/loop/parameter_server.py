"""Steps with parameter servers. The coordinator schedules each step together with its batches.

Keras gives each worker its own dataset, so the Examples of an epoch depend on the speed of the
workers, and a restarted worker begins its dataset again. Here the coordinator reads the split once,
in a fixed order, and sends each step its batches. If a worker is lost, its step is repeated with
the same batches.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import tensorflow as tf
from absl import logging

from trainer_module.cluster.collective import waiting_for
from trainer_module.loop.sums import NAMES, Step, means

_STEPS_AHEAD = 4
"""Scheduled steps for each worker. A worker that is slower than the others by this factor does not
delay them. A training that receives SIGTERM finishes the scheduled steps before it saves."""


class CoordinatorSteps:
    """An executor of steps on the workers, which adds up the sums of all steps.

    Args:
      step: what a replica computes for a batch; it may return further sums than those of NAMES.
      strategy: the strategy of the variables in `step`.
      workers: the number of workers.
    """

    def __init__(self, step: Step, strategy: tf.distribute.ParameterServerStrategy, workers: int):
        self._step = step
        self._strategy = strategy
        self._coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
        self._workers = workers
        self._max_pending = workers * _STEPS_AHEAD
        self._pending: deque[Any] = deque()
        self._function: Any = None
        self._last: dict[str, float] = {}
        self.reset()

    def reset(self) -> None:
        """Forget the sums of the earlier steps, which are done."""
        self._totals: dict[str, Any] = {}

    def __call__(self, data: Any, count: int) -> dict[str, float]:
        """Schedule `count` steps; return the means of the last step whose result has arrived.

        Only the first call waits for a result. A later epoch begins with that of the one before.

        Args:
          data: an iterator of batches, of which a step takes one for each replica of a worker.
          count: the number of steps.

        Raises:
          tensorflow.errors.OpError: a step failed, a parameter server is gone, or `data` cannot be
            read.
        """
        if self._function is None:
            self._function = self._on_worker(data.element_spec)
        for _ in range(count):
            batches = tuple(next(data) for _ in range(self._strategy.num_replicas_in_sync))
            if len(self._pending) == self._max_pending:
                self._collect()
            result = self._coordinator.schedule(self._function, args=(batches,))
            self._pending.append((batches, result))
        if not self._last:
            self._collect()
        return self._last

    def totals(self) -> dict[str, Any]:
        """Wait for all steps; return name -> the sum over the steps since `reset`, float64.

        Raises:
          tensorflow.errors.OpError: a step failed, or a parameter server is gone.
        """
        while self._pending:
            self._collect()
        return self._totals

    def means(self) -> dict[str, float]:
        """Return the metrics over the steps since `reset`; see `totals` for the errors."""
        return means(self.totals())

    def _collect(self) -> None:
        """Wait for the oldest step and add its sums."""
        of_step = self._fetched(*self._pending.popleft())
        for name, values in of_step.items():
            # float64: float32 is not exact beyond 2^24.
            self._totals[name] = self._totals.get(name, 0.0) + values.astype(np.float64)
        self._last = means({name: of_step[name] for name in NAMES})

    def _fetched(self, batches: tuple[Any, ...], result: Any) -> dict[str, Any]:
        """Return the sums of a step, which is repeated if its worker was lost with the result.

        Raises:
          CancelledError: the step was cancelled.
        """
        while True:
            try:
                with waiting_for(f"a step, which is on one of {self._workers} workers"):
                    sums: dict[str, Any] = result.fetch()
                return sums
            except tf.errors.CancelledError:
                # This step was cancelled because another one failed; raise the error of that one.
                self._coordinator.join()
                raise
            except tf.errors.OpError as error:
                # The coordinator repeats a step whose worker is lost before the step is done.
                # Here the step is done, and its result could not be copied from the worker: an
                # error of the step itself would have cancelled it.
                logging.warning("A result was lost with its worker: %s", error.message)
                result = self._coordinator.schedule(self._function, args=(batches,))

    def _on_worker(self, batch_spec: Any) -> Any:
        """Return the function that a worker runs, with a batch for each GPU or one for its CPU."""
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
