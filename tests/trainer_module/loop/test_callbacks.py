"""Callbacks: progress, a loss that is not finite, TensorBoard."""

import logging
from types import SimpleNamespace

import pytest
import tensorflow as tf

from core import progress
from trainer_module.loop.callbacks import (
    StepProgress,
    TensorBoard,
)
from trainer_module.settings import Training


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


@pytest.mark.parametrize("first_step", [0, 7])
@pytest.mark.parametrize(("at_once", "profiled"), [(1, [1, 3]), (4, [0, 4])])
def test_the_profile_has_the_steps_that_are_set_once(monkeypatch, first_step, at_once, profiled):
    events = []
    stub = SimpleNamespace(
        start=lambda folder: events.append(board.step), stop=lambda: events.append(board.step)
    )
    monkeypatch.setattr(tf.profiler, "experimental", stub)
    training = Training(profile_steps=(2, 3), steps_per_execution=at_once)
    board = TensorBoard("folder", training, first_step)
    for _ in range(2):
        # A resumed training calls `fit` twice: for the rest of an epoch, and for the others.
        for batch in range(0, 8, at_once):
            board.on_train_batch_begin(batch)
            board.on_train_batch_end(batch + at_once - 1)
        board.on_train_end()
    assert events == [first_step + step for step in profiled]
