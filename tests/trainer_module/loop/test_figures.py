"""Callbacks: the progress, and the figures of a training by a clock that the test controls."""

import json
import math
from types import SimpleNamespace

import pytest
import tensorflow as tf
import tf_keras
from hypothesis import given
from hypothesis import strategies as st

from core.training_summary import Measured
from trainer_module.loop import callbacks
from trainer_module.loop.callbacks import (
    MAX_POINTS,
    Measurements,
    SkippedUpdates,
    StepProgress,
    StopOnNonFiniteLoss,
    TrainingCurve,
)
from trainer_module.loop.checkpoints import State
from trainer_module.loop.finite import NotFiniteError

CPUS = 2
CPU_SECONDS_A_SECOND = 1.5


class Clock:
    """A stand-in for the module `time`."""

    def __init__(self):
        self.now = 1000.0

    def perf_counter(self):
        return self.now

    def process_time(self):
        return CPU_SECONDS_A_SECOND * self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(callbacks, "time", clock)
    monkeypatch.setattr(callbacks, "cores", lambda: CPUS)
    return clock


def take_steps(callback, clock, count, seconds, at_once=1):
    for batch in range(at_once - 1, count, at_once):
        clock.now += seconds * at_once
        callback.on_train_batch_end(batch)


def train_epoch(callback, clock, number, count, seconds, **options):
    callback.on_epoch_begin(number)
    take_steps(callback, clock, count, seconds, **options)
    callback.on_test_begin()
    # Neither the evaluation is measured, nor what happens between two epochs.
    clock.now += 100.0
    callback.on_epoch_end(number)
    clock.now += 50.0


@pytest.mark.parametrize("at_once", [1, 3])
def test_a_resumed_training_adds_to_the_earlier_measurements_of_its_steps(clock, at_once):
    so_far = {}
    begun = Measurements(150, 0, so_far)
    train_epoch(begun, clock, 0, 6, 0.5, at_once=at_once)
    begun.on_epoch_begin(1)
    take_steps(begun, clock, 3, 2.0, at_once=at_once)
    kept = json.loads(json.dumps(so_far))
    assert kept["seconds_per_epoch"] == [3.0, 6.0]
    resumed = Measurements(150, 9, kept)
    train_epoch(resumed, clock, 1, 3, 1.0, at_once=at_once)
    measured = resumed.summary()
    assert measured.peak_rss_bytes > 2**20
    assert measured == Measured(
        seconds_per_epoch=[3.0, 9.0],
        steps=12,
        step_seconds=1.0,
        # Two epochs of 150 Examples, although the steps have room for more.
        examples_per_second=25.0,
        cpu_utilisation=CPU_SECONDS_A_SECOND / CPUS,
        cpus=CPUS,
        peak_rss_bytes=measured.peak_rss_bytes,
    )


@pytest.mark.parametrize(
    ("logs", "line"),
    [
        ({"loss": math.inf, "val_loss": 0.5}, "the loss is inf at step 2"),
        # In the evaluation alone: such a model cannot be judged.
        ({"loss": 0.5, "val_loss": math.nan}, "the eval loss is nan after step 2"),
    ],
)
def test_a_loss_of_an_epoch_that_is_not_finite_ends_the_training(logs, line):
    stop = StopOnNonFiniteLoss()
    stop.on_train_batch_end(1, {"loss": 0.5})
    stop.on_epoch_end(0, {"loss": 0.5, "val_loss": 0.5})
    with pytest.raises(NotFiniteError) as error:
        stop.on_epoch_end(0, logs)
    remedy = "nothing was exported; a smaller training.learning_rate may help"
    assert str(error.value) == f"{line}, {remedy}"


@pytest.mark.parametrize("at_once", [1, 2])
@pytest.mark.parametrize("strategy", [tf.distribute.get_strategy, tf.distribute.MirroredStrategy])
def test_updates_of_gradients_that_overflow_are_counted(at_once, strategy):
    strategy = strategy()
    with strategy.scope():
        weight = tf.Variable(1.0)
        optimizer = tf_keras.mixed_precision.LossScaleOptimizer(
            tf_keras.optimizers.legacy.SGD(0.1), initial_scale=4, dynamic_growth_steps=4
        )

    def update(gradient):
        optimizer.apply_gradients([(optimizer.get_scaled_loss(gradient), weight)])

    state = State()
    callback = SkippedUpdates(0, state)
    callback.set_model(SimpleNamespace(optimizer=optimizer))
    callback.on_train_begin()
    overflows = [True, True, *[False] * 6, True, False, *[False] * 4]
    for step, overflow in enumerate(overflows):
        strategy.run(update, args=(tf.constant(math.inf if overflow else 1.0),))
        if (step + 1) % at_once == 0:
            callback.on_train_batch_end(step)
    assert state.skipped_updates == sum(overflows)


def test_progress_is_reported_twenty_times_an_epoch_and_at_the_end(reported):
    progress = StepProgress(41, 2)
    for number in range(2):
        for batch in range(41):
            progress.on_train_batch_end(batch)
        progress.on_epoch_end(number)
    assert {(each.unit, each.total) for each in reported} == {("steps", 82)}
    assert [each.done for each in reported] == list(range(2, 83, 2))
    last = StepProgress(41, 1)
    for batch in range(41):
        last.on_train_batch_end(batch)
    assert [each.done for each in reported[-2:]] == [40, 41], "although 40 was reported"


def one_example(step):
    return 1


def record(curve, epochs, steps, at_once=1):
    for _ in range(epochs):
        for step in range(at_once - 1, steps, at_once):
            number = curve.step + at_once
            curve.on_train_batch_end(step, {"loss": float(number), "accuracy": 1 / number})
        curve.on_epoch_end(0, {})


@given(st.integers(1, 4), st.integers(1, 2000), st.integers(0, 1))
def test_the_points_of_the_curve_cover_every_step_once(epochs, steps, resumed):
    points, total = [], epochs * steps
    record(TrainingCurve(0, total, points, one_example), epochs - resumed, steps)
    before = [dict(point) for point in points]
    record(TrainingCurve((epochs - resumed) * steps, total, points, one_example), resumed, steps)
    assert points[: len(before)] == before
    assert len(points) <= MAX_POINTS + epochs
    assert points[-1]["step"] == total == sum(point["steps"] for point in points)
    assert sum(point["loss"] * point["steps"] for point in points) == pytest.approx(
        total * (total + 1) / 2
    )


def test_the_curve_has_a_point_for_each_call_at_most():
    points = []
    record(TrainingCurve(0, 8, points, one_example), 1, 8, at_once=4)
    assert [(point["step"], point["steps"]) for point in points] == [(4, 4), (8, 4)]


def test_a_point_of_the_curve_is_a_mean_over_examples():
    """A short batch counts with its Examples, an empty one, whose logs are zeros, not at all."""
    points = []
    examples = [8, 8, 2, 0] * 2
    # 512 steps in all: a point has two.
    curve = TrainingCurve(0, 512, points, examples.__getitem__)
    for losses in ([1.0, 2.0, 5.0, 0.0], [3.0, 3.0, 4.0, 0.0]):
        for batch, loss in enumerate(losses):
            curve.on_train_batch_end(batch, {"loss": loss, "accuracy": loss})
        curve.on_epoch_end(0, {})
    assert [point["loss"] for point in points] == [1.5, 5.0, 3.0, 4.0]
    points.clear()
    curve = TrainingCurve(0, 4, points, examples.__getitem__)
    for batch, loss in enumerate([1.0, 2.0, 5.0, 0.0]):
        curve.on_train_batch_end(batch, {"loss": loss, "accuracy": loss})
    assert [(point["step"], point["steps"], point["loss"]) for point in points] == [
        (1, 1, 1.0),
        (2, 1, 2.0),
        (4, 2, 5.0),
    ]


def test_the_curve_of_a_replica_without_examples_is_empty():
    """Of two processes and a single Example, one process has empty batches only."""
    points = []
    curve = TrainingCurve(0, 2, points, lambda _: 0)
    for batch in range(2):
        curve.on_train_batch_end(batch, {"loss": 0.0, "accuracy": 0.0})
    curve.on_epoch_end(0, {})
    assert points == []
