"""The loss and the accuracy over the steps, in a bounded number of points."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer_module.loop.curve import MOST_POINTS, Curve


def record(curve, epochs, steps, at_once=1):
    for _ in range(epochs):
        for step in range(at_once - 1, steps, at_once):
            number = curve.step + at_once
            curve.on_train_batch_end(step, {"loss": float(number), "accuracy": 1 / number})
        curve.on_epoch_end(0, {})


@given(st.integers(1, 4), st.integers(1, 2000))
def test_the_points_cover_every_step_once(epochs, steps):
    points = []
    record(Curve(0, points), epochs, steps)
    total = epochs * steps
    assert len(points) <= MOST_POINTS
    assert points[-1]["step"] == total == sum(point["steps"] for point in points)
    assert sum(point["loss"] * point["steps"] for point in points) == pytest.approx(
        total * (total + 1) / 2
    )


def test_a_short_training_has_a_point_for_each_step():
    points = []
    record(Curve(0, points), 1, 3)
    assert points == [
        {"step": step, "steps": 1, "loss": step, "accuracy": 1 / step} for step in (1, 2, 3)
    ]


def test_a_resumed_training_continues_the_points():
    points = []
    record(Curve(0, points), 1, 300)
    before = [dict(point) for point in points]
    record(Curve(300, points), 1, 100)
    assert points[: len(before)] == before
    assert sum(point["steps"] for point in points) == 400


def test_several_steps_in_one_call_count_as_several():
    points = []
    record(Curve(0, points), 1, 8, at_once=4)
    assert [(point["step"], point["steps"]) for point in points] == [(4, 4), (8, 4)]
