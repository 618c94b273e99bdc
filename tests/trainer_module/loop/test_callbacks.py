"""The callback that reports the progress."""

import logging

import pytest

from core import progress
from trainer_module.loop.callbacks import StepProgress


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
