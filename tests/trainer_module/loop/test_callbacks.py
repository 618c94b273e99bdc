"""Callbacks: progress, a loss that is not finite."""

import logging
import math

import pytest

from core import progress
from trainer_module.loop.callbacks import (
    NonFiniteLossError,
    StepProgress,
    StopOnNonFiniteLoss,
)


@pytest.fixture
def reported():
    """(done, total) of each report of progress."""
    reports = []

    class Listener(logging.Handler):
        def emit(self, record):
            values = progress.values(record)
            assert values["unit"] == "steps"
            reports.append((values["done"], values["total"]))

    listener = Listener()
    progress.LOGGER.addHandler(listener)
    yield reports
    progress.LOGGER.removeHandler(listener)


def epoch(callback, number, batches):
    for batch in batches:
        callback.on_train_batch_end(batch, {"loss": 0.5})
    callback.on_epoch_end(number, {"loss": 0.5})


def test_progress_is_reported_twenty_times_an_epoch_and_at_the_end(reported):
    callback = StepProgress(41, 2)
    for number in range(2):
        epoch(callback, number, range(41))
    assert reported == [(done, 82) for done in range(2, 83, 2)]
    del reported[:]
    epoch(StepProgress(41, 1), 0, range(41))
    assert reported[-2:] == [(40, 41), (41, 41)], "although the step before was reported"


@pytest.mark.parametrize("loss", [math.nan, math.inf, -math.inf])
def test_a_loss_that_is_not_finite_ends_the_training_at_its_step(loss):
    callback = StopOnNonFiniteLoss(4)
    callback.on_train_batch_end(0, {"loss": 0.5})
    with pytest.raises(
        NonFiniteLossError, match=f"the loss is {loss} at step 6, nothing was exported"
    ):
        callback.on_train_batch_end(1, {"loss": loss})
    with pytest.raises(NonFiniteLossError):
        callback.on_epoch_end(0, {"loss": loss})
