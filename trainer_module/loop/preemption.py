"""SIGTERM during a training: all synchronous processes save and end after the same step.

TensorFlow's PreemptionCheckpointHandler is no alternative. It refuses clusters with parameter
servers, does nothing on Google Cloud with CPUs or TPUs, sends an HTTP request to the metadata
server when it is created, does not react during an evaluation, starts from scratch if the list of
checkpoints is damaged, and counts calls of the compiled function.
"""

from __future__ import annotations

import contextlib
import signal
import time

import tensorflow as tf

from trainer_module.cluster.collective import Collective

EXIT_CODE = 128 + signal.SIGTERM
"""The exit code of a process ended by SIGTERM, by the convention of shells."""
SECONDS_BETWEEN_VOTES = 1.0
_MAX_STEPS_BETWEEN_VOTES = 16
"""A vote costs about as much as a small step."""


class PreemptionSync:
    """A collective check whether any of the synchronous processes has received SIGTERM.

    The processes vote about every SECONDS_BETWEEN_VOTES. The number of steps until the next vote
    follows from the sum of the times that they measure, so it is equal in all processes.
    """

    def __init__(self, collective: Collective):
        self._requested = False
        self._collective = collective
        self._steps_between = 1
        self._steps = 0
        self._since = time.perf_counter()

    def request(self, number: signal.Signals) -> None:
        """Request the end of all processes; the handler of SIGTERM."""
        self._requested = True

    def after_step(self) -> bool:
        """Count one training or evaluation step; return whether to end, usually without a vote."""
        self._steps += 1
        if not self._collective.needed:
            return self._requested
        return self._steps >= self._steps_between and self.now()

    def now(self) -> bool:
        """Vote, and return whether to end; every process calls this at the same point."""
        if not self._collective.needed:
            return self._requested
        seconds = (time.perf_counter() - self._since) / max(1, self._steps)
        requests, total_seconds = self._collective.sum(
            tf.constant([float(self._requested), seconds])
        ).numpy()
        processes = self._collective.processes
        steps = SECONDS_BETWEEN_VOTES * processes / max(1e-9, float(total_seconds))
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
