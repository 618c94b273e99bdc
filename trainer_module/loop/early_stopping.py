"""Early stopping that survives a restart, because its state is part of the checkpoints."""

from __future__ import annotations

import math
from typing import Any

import tf_keras
from absl import logging

from trainer_module.loop.checkpoints import Checkpoints


class EarlyStopping(tf_keras.callbacks.Callback):
    """A callback that ends the training after `patience` epochs without a lower eval loss.

    Keras's EarlyStopping keeps its state in the process: after a restart it has lost the best
    weights and the number of epochs without progress. Here the best epoch is in the state of the
    checkpoints, and its weights are in a file next to them, which the training restores at its end.
    This callback must precede the one that saves checkpoints.
    """

    def __init__(self, patience: int, checkpoints: Checkpoints):
        super().__init__()
        self._patience = patience
        self._checkpoints = checkpoints

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        state = self._checkpoints.state
        metrics = {name: float(value) for name, value in logs.items()}
        best = state.best_metrics.get("val_loss", math.nan)
        # The first epoch is the best so far, even if its loss is NaN.
        if state.best_epoch is None or math.isnan(best) or metrics["val_loss"] < best:
            state.best_epoch, state.best_metrics = epoch, metrics
            self._checkpoints.save_best()
        elif epoch - state.best_epoch >= self._patience:
            logging.info(
                "Early stopping after epoch %d: the eval loss was lowest after epoch %d",
                epoch + 1,
                state.best_epoch + 1,
            )
            self.model.stop_training = True
