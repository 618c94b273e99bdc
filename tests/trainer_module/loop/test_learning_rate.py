"""The learning rate over the steps: warm-up, cosine, and scaling with the batch."""

import math

import pytest

from trainer_module.loop.learning_rate import FINAL_FRACTION, UNSCALED_BATCH, make_schedule
from trainer_module.settings import Training


def rates(training, steps, peak=0.4):
    """The learning rate of each of the first `steps` steps; the training has 20 in all."""
    made = make_schedule(training, peak, UNSCALED_BATCH, 20)
    return [float(made(step)) for step in range(steps)]


def test_the_rate_rises_over_the_warmup_and_may_stay():
    training = Training(warmup=0.25, schedule="constant")
    assert rates(training, 7) == pytest.approx([0.08, 0.16, 0.24, 0.32, 0.4, 0.4, 0.4])
    assert rates(Training(warmup=0.0, schedule="constant"), 20) == pytest.approx([0.4] * 20)
    assert rates(Training(warmup=0.0, schedule="cosine"), 1) == pytest.approx([0.4])


def test_a_cosine_falls_to_its_end_at_the_last_step_and_stays_there():
    made = make_schedule(Training(warmup=0.2, schedule="cosine"), 0.4, UNSCALED_BATCH, 20)
    low = 0.4 * FINAL_FRACTION
    # Four steps of warm-up and sixteen of the cosine, of which a quarter, a half and all are over.
    quarter = low + (0.4 - low) * (1 + math.cos(math.pi / 4)) / 2
    expected = {4: 0.4, 8: quarter, 12: (0.4 + low) / 2, 20: low, 25: low}
    assert {step: float(made(step)) for step in expected} == pytest.approx(expected)
    assert FINAL_FRACTION == 0.3, "docs/explanation/training.md has this number"


@pytest.mark.parametrize(
    ("scaling", "expected"), [("linear", 0.1), ("square_root", 0.2), ("none", 0.4)]
)
def test_the_rate_is_scaled_with_the_global_batch(scaling, expected):
    settings = {"learning_rate_scaling": scaling, "schedule": "constant", "warmup": 0.0}
    for training, own in (
        (Training(learning_rate=0.4, **settings), 9.0),
        (Training(**settings), 0.4),
    ):
        made = make_schedule(training, own, UNSCALED_BATCH // 4, 20)
        assert float(made(0)) == pytest.approx(expected)
