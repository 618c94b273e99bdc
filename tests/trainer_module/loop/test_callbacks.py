"""Callbacks: progress, a loss that is not finite, best effort."""

import logging
import math

import pytest
import tf_keras

from core import progress
from trainer_module.loop.callbacks import (
    NonFiniteLossError,
    StepCallback,
    StepProgress,
    StopOnNonFiniteLoss,
    best_effort,
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


def test_steps_are_counted_over_epochs_and_those_before():
    callback = StepCallback(7)
    epoch(callback, 1, range(3))
    assert callback.step == 10
    # Several steps at once.
    epoch(callback, 2, [3, 7, 9])
    assert callback.step == 20


def test_progress_is_reported_twenty_times_an_epoch_and_at_the_end(reported):
    callback = StepProgress(50, 2)
    epoch(callback, 0, range(50))
    assert reported == [(done, 100) for done in range(2, 51, 2)]
    epoch(callback, 1, range(50))
    assert reported[-1] == (100, 100)
    assert len(reported) == 50


def test_the_last_step_is_reported_although_the_one_before_was(reported):
    callback = StepProgress(41, 1)
    epoch(callback, 0, range(41))
    assert reported[-2:] == [(40, 41), (41, 41)]


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


def test_a_best_effort_callback_logs_its_first_error_and_stops(caplog):
    calls = []

    class Failing(tf_keras.callbacks.Callback):
        def on_train_begin(self, logs=None):
            calls.append("begin")

        def on_epoch_end(self, epoch, logs=None):
            calls.append(epoch)
            raise OSError("no room")

    callback = best_effort(Failing())
    callback.on_train_begin()
    for number in range(3):
        callback.on_epoch_end(number)
    callback.on_train_begin()
    assert calls == ["begin", 0]
    [line] = [record.getMessage() for record in caplog.records]
    assert line == "Failing is disabled after an error: no room"
