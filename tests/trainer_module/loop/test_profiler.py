"""`training.profile_steps`: the steps that TensorFlow's profiler records."""

import pytest
import tensorflow as tf
import tf_keras

from trainer_module.loop.loops import _executions
from trainer_module.loop.profiler import Profiler

pytestmark = pytest.mark.slow

STEPS, EPOCHS = 16, 3


@pytest.fixture
def recorded(monkeypatch):
    """(profile_steps, steps of one call, steps done before) -> ranges of steps, of a training of
    three epochs of 16 steps."""

    def recorded(steps, at_once=1, first_step=0):
        ranges = []
        profiler = Profiler("logs", steps, at_once, first_step)

        def start(log_dir):
            assert log_dir == "logs"
            ranges.append(profiler.step + 1)

        def stop():
            ranges.append((ranges.pop(), profiler.step))

        monkeypatch.setattr(tf.profiler.experimental, "start", start)
        monkeypatch.setattr(tf.profiler.experimental, "stop", stop)
        hooks = tf_keras.callbacks.CallbackList([profiler])
        hooks.on_train_begin()
        for epoch in range(first_step // STEPS, EPOCHS):
            hooks.on_epoch_begin(epoch)
            rest = STEPS - first_step % STEPS if epoch == first_step // STEPS else STEPS
            for step, count in _executions(rest, at_once):
                hooks.on_train_batch_begin(step)
                hooks.on_train_batch_end(step + count - 1, {})
            hooks.on_epoch_end(epoch)
        hooks.on_train_end()
        return ranges

    return recorded


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ((1, 1), [(1, 1)]),
        ((2, 4), [(2, 4)]),
        # The second epoch begins with step 17.
        ((14, 20), [(14, 20)]),
        ((40, 48), [(40, 48)]),
        # The training ends before them, or with some of them.
        ((49, 50), []),
        ((47, 60), [(47, 48)]),
    ],
)
def test_the_steps_that_are_set_are_recorded(recorded, steps, expected):
    assert recorded(steps) == expected


def test_several_steps_that_are_executed_at_once_are_recorded_at_once(recorded):
    assert recorded((5, 6), at_once=4) == [(5, 8)]
    assert recorded((4, 5), at_once=4) == [(1, 8)]
    # One call executes the rest of the epoch.
    assert recorded((17, 18), at_once=16) == [(17, 32)]


def test_a_resumed_training_counts_the_earlier_steps(recorded):
    assert recorded((20, 22), first_step=10) == [(20, 22)]
    assert recorded((20, 22), first_step=20) == [(21, 22)]
    assert recorded((20, 22), first_step=22) == []
