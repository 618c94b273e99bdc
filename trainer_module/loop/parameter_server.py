"""Steps with parameter servers. The coordinator schedules each step together with its batches.

In Keras each worker has its own dataset, so the Examples of an epoch depend on the speed of the
workers, and a restarted worker begins its dataset again. Here the coordinator reads the split once,
in a fixed order, and sends the batches of each step to a worker. If a worker is lost, its step is
repeated with the same batches.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
from absl import logging

from trainer_module.cluster.collective import waiting_for
from trainer_module.loop.sums import NAMES, Step, means

_STEPS_AHEAD = 4
"""Maximum number of scheduled steps for each worker. A worker that is slower than the others by
this factor does not delay them. After SIGTERM, the scheduled steps are finished before a checkpoint
is saved."""


class CoordinatorSteps:
    """An executor of steps on the workers, which adds up the sums of all steps.

    Args:
      step: the computation of a replica for a batch; it may return more sums than those of NAMES.
      strategy: the strategy of the variables in `step`.
      workers: the number of workers.
      on_result: called with the sums of each step, in the order of the steps, when they arrive.
    """

    def __init__(
        self,
        step: Step,
        strategy: tf.distribute.ParameterServerStrategy,
        workers: int,
        on_result: Callable[[dict[str, Any]], None] = lambda sums: None,
    ):
        self._step, self._on_result = step, on_result
        self._strategy = strategy
        self._coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
        self._workers = workers
        self._max_pending = workers * _STEPS_AHEAD
        self._pending: deque[Any] = deque()
        self._function: Any = None
        self._last: dict[str, float] = {}
        self.reset()

    def reset(self) -> None:
        """Discard the sums of the earlier steps, which must be done."""
        self._totals: dict[str, Any] = {}

    def __call__(self, data: Any, count: int) -> dict[str, float]:
        """Schedule `count` steps; return the means of the last step whose result has arrived.

        Only the first call waits for a result. At the beginning of a later epoch the means are
        those of the last step of the previous epoch.

        Args:
          data: an iterator of batches. A step uses one for each replica of a worker.
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
        """Wait for all steps; return the metrics over the steps since `reset`.

        Raises:
          tensorflow.errors.OpError: a step failed, or a parameter server is gone.
        """
        return means(self.totals())

    def _collect(self) -> None:
        """Wait for the oldest step and add its sums."""
        sums = self._fetched(*self._pending.popleft())
        for name, values in sums.items():
            # In float64, because float32 is not exact beyond 2^24.
            self._totals[name] = self._totals.get(name, 0.0) + values.astype(np.float64)
        self._last = means({name: sums[name] for name in NAMES})
        self._on_result(sums)

    def _fetched(self, batches: tuple[Any, ...], result: Any) -> dict[str, Any]:
        """Return the sums of a step; repeat the step if its result was lost with a worker.

        Raises:
          CancelledError: the step was cancelled.
        """
        while True:
            try:
                with waiting_for(f"a step, which is on one of {self._workers} workers"):
                    sums: dict[str, Any] = result.fetch()
                return sums
            except tf.errors.CancelledError:
                # This step was cancelled because another step failed. Raise the error of that step.
                self._coordinator.join()
                raise
            except tf.errors.OpError as error:
                # The coordinator itself repeats a step if the worker is lost before the step is
                # done. This step is done, because an error of the step would have cancelled it.
                # Only its result could not be copied from the worker.
                logging.warning("A result was lost with its worker: %s", error.message)
                result = self._coordinator.schedule(self._function, args=(batches,))

    def _on_worker(self, batch_spec: Any) -> Any:
        """Return the function that a worker runs, with a batch for each GPU or one for its CPU."""
        strategy = self._strategy

        def function(batches: tuple[Any, ...]) -> dict[str, tf.Tensor]:
            def replica_step() -> dict[str, tf.Tensor]:
                replica = tf.distribute.get_replica_context().replica_id_in_sync_group
                return self._step(batches[int(tf.get_static_value(replica))])

            sums = strategy.run(replica_step)
            return {
                name: strategy.reduce(tf.distribute.ReduceOp.SUM, values, axis=None)
                for name, values in sums.items()
            }

        signature = ((batch_spec,) * strategy.num_replicas_in_sync,)
        return tf.function(function, input_signature=signature, autograph=False)
