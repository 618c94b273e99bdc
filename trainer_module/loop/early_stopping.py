"""Early stopping that survives a kill: what it knows is part of the checkpoints."""

from __future__ import annotations

import math
from typing import Any

import tf_keras
from absl import logging

from trainer_module.loop.checkpoints import Checkpoints


class EarlyStopping(tf_keras.callbacks.Callback):
    """Ends the training after `patience` epochs without a smaller eval loss.

    Keras's own begins anew in every process: it forgets the best weights and how long it has
    waited, and at the end of a resumed training it restores what only looks like the best. Here
    the best epoch is in the state of the checkpoints, and its weights are a file beside them,
    which the training restores when it is over. To come before the callback that saves.
    """

    def __init__(self, patience: int, checkpoints: Checkpoints):
        super().__init__()
        self._patience = patience
        self._checkpoints = checkpoints

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        state = self._checkpoints.state
        metrics = {name: float(value) for name, value in logs.items()}
        best = state.best_metrics.get("val_loss", math.nan)
        # The first epoch is the best so far, even if its loss is no number.
        if state.best_epoch is None or math.isnan(best) or metrics["val_loss"] < best:
            state.best_epoch, state.best_metrics = epoch, metrics
            self._checkpoints.save_best()
        elif epoch - state.best_epoch >= self._patience:
            logging.info(
                "Early stopping after epoch %d: the eval loss was least after epoch %d",
                epoch + 1,
                state.best_epoch + 1,
            )
            self.model.stop_training = True
