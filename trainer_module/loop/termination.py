"""SIGTERM: noticed while a training can save, agreed upon by the processes that train in step."""

from __future__ import annotations

import signal
import threading
import time
from types import FrameType, TracebackType
from typing import Any

import tensorflow as tf

from trainer_module.distribute.agreement import Agreement

EXIT_CODE = 128 + signal.SIGTERM
"""The shell's for a process that SIGTERM ended."""
SECONDS_BETWEEN_VOTES = 1.0
_MOST_STEPS_BETWEEN_VOTES = 16
"""A vote costs about as much as a small step."""


class Termination:
    """While it is entered, SIGTERM does not end the process but sets `asked_for`."""

    def __init__(self) -> None:
        self.asked_for = False
        self._handler_before: Any = None
        self._descriptor_before = -1

    def __enter__(self) -> Termination:
        # Only the main thread may; elsewhere SIGTERM does what it did without us.
        if threading.current_thread() is threading.main_thread():
            self._handler_before = signal.signal(signal.SIGTERM, self._notice)
            self._descriptor_before = signal.set_wakeup_fd(-1)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._handler_before is not None:
            signal.set_wakeup_fd(self._descriptor_before)
            signal.signal(signal.SIGTERM, self._handler_before)

    def _notice(self, signum: int, frame: FrameType | None) -> None:
        self.asked_for = True


class Vote:
    """Whether SIGTERM came to any of the processes that train in step; they all end at one step.

    They vote after about SECONDS_BETWEEN_VOTES of steps. How many steps those are follows from
    the time that all of them measured together, so that each of them finds the same number.
    """

    def __init__(self, termination: Termination, agreement: Agreement):
        self._termination = termination
        self._agreement = agreement
        self._steps_between = 1
        self._steps = 0
        self._since = time.perf_counter()

    def after_step(self) -> bool:
        """The answer after one more step, of a training or an evaluation; mostly without a vote."""
        self._steps += 1
        if not self._agreement.needed:
            return self._termination.asked_for
        return self._steps >= self._steps_between and self.now()

    def now(self) -> bool:
        """The answer of a vote; every process calls this at the same point."""
        if not self._agreement.needed:
            return self._termination.asked_for
        seconds = (time.perf_counter() - self._since) / max(1, self._steps)
        told, of_all = self._agreement.sum(
            tf.constant([float(self._termination.asked_for), seconds])
        ).numpy()
        wanted = SECONDS_BETWEEN_VOTES * self._agreement.processes / max(1e-9, float(of_all))
        self._steps_between = int(min(max(1.0, wanted), _MOST_STEPS_BETWEEN_VOTES))
        self._steps = 0
        self._since = time.perf_counter()
        return bool(told > 0)
