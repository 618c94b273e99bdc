"""The loss and the accuracy over the steps of a training, in a bounded number of points."""

from __future__ import annotations

from typing import Any

from trainer_module.loop.callbacks import StepCallback

MOST_POINTS = 256
"""The maximum number of points. If there are more, each pair of neighbours is merged into one."""


class Curve(StepCallback):
    """A callback that records the loss and the accuracy of the training steps.

    A point is {"step": the last of its steps, "steps": their number, "loss": their mean loss,
    "accuracy": their mean accuracy}. The values are those of this process's first replica, because
    a sum over all replicas would take longer than a small step.
    """

    def __init__(self, first_step: int, points: list[dict[str, float]]):
        """Create the callback for a new or a resumed training.

        Args:
          first_step: steps done before a resume.
          points: the points of these steps; updated, because it is part of the checkpoints.
        """
        super().__init__(first_step)
        self._points = points
        self._size = max((int(point["steps"]) for point in points), default=1)
        self._since = first_step
        self._sums = {"loss": 0.0, "accuracy": 0.0}

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        before = self.step
        super().on_train_batch_end(batch, logs)
        # With steps_per_execution the logs are those of the last step; it represents them all.
        for name in self._sums:
            self._sums[name] += float(logs[name]) * (self.step - before)
        if self.step - self._since >= self._size:
            self._close_point()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        super().on_epoch_end(epoch, logs)
        if self.step > self._since:
            self._close_point()

    def _close_point(self) -> None:
        steps = self.step - self._since
        means = {name: total / steps for name, total in self._sums.items()}
        self._points.append({"step": self.step, "steps": steps, **means})
        self._since = self.step
        self._sums = dict.fromkeys(self._sums, 0.0)
        if len(self._points) > MOST_POINTS:
            pairs = [self._points[i : i + 2] for i in range(0, len(self._points), 2)]
            self._points[:] = [_joined(*pair) for pair in pairs]
            self._size *= 2


def _joined(first: dict[str, float], second: dict[str, float] | None = None) -> dict[str, float]:
    if second is None:
        return first
    steps = first["steps"] + second["steps"]
    means = {
        name: (first[name] * first["steps"] + second[name] * second["steps"]) / steps
        for name in ("loss", "accuracy")
    }
    return {"step": second["step"], "steps": steps, **means}
