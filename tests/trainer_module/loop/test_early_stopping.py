"""Early stopping: the epoch after which it ends a training, and the final weights."""

import numpy as np
import pytest

from tests.trainer_module.one_weight import make_model, set_weight, weight
from trainer_module.loop.checkpoints import Checkpoints
from trainer_module.loop.early_stopping import EarlyStopping


@pytest.fixture
def stopping(tmp_path):
    """(patience, eval losses) -> (model, its checkpoints) after the epochs until the stop.

    The weight is the number of the epoch, from 1 on.
    """

    def stop(patience, losses):
        model = make_model()
        checkpoints = Checkpoints(str(tmp_path), model, chief=True, name="chief")
        model.stop_training = False
        callback = EarlyStopping(patience, checkpoints)
        callback.set_model(model)
        for epoch, loss in enumerate(losses):
            set_weight(model, epoch + 1.0)
            callback.on_epoch_end(epoch, {"val_loss": loss, "loss": epoch / 10})
            if model.stop_training:
                break
        return model, checkpoints

    return stop


@pytest.mark.parametrize(
    ("patience", "losses", "last", "best"),
    [
        (1, [0.5, 0.4, 0.45, 0.1], 3, 2),
        (2, [0.5, 0.4, 0.45, 0.41, 0.1], 4, 2),
        (2, [0.5, 0.4, 0.45, 0.3, 0.35, 0.36, 0.1], 6, 4),
        (3, [0.5, 0.4, 0.45, 0.41], 4, 2),
        # An equal loss is not a better one.
        (1, [0.5, 0.5, 0.1], 2, 1),
        (1, [np.nan, 0.5, 0.6], 3, 2),
    ],
)
def test_it_ends_after_that_many_epochs_without_a_better_one(
    stopping, patience, losses, last, best
):
    model, checkpoints = stopping(patience, losses)
    assert weight(model) == last
    assert checkpoints.state.best_epoch == best - 1
    assert checkpoints.state.best_metrics == {
        "val_loss": losses[best - 1],
        "loss": (best - 1) / 10,
    }
    checkpoints.restore_best()
    assert weight(model) == best


def test_it_does_not_stop_while_it_gets_better(stopping):
    model, _ = stopping(1, [0.5, 0.4, 0.3])
    assert not model.stop_training
