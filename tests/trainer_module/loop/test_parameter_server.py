"""Steps under parameter servers: their batches and their sums."""

import pytest
import tensorflow as tf

from trainer_module.loop.callbacks import TrainingCurve
from trainer_module.loop.parameter_server import CoordinatorSteps


class Coordinator:
    """A stand-in for TensorFlow's coordinator that executes a step when its result is fetched."""

    def __init__(self, strategy):
        self.waiting = 0
        self.joined = False
        self.error = self.lost = None

    def schedule(self, function, args):
        self.waiting += 1

        def fetch():
            self.waiting -= 1
            if self.error:
                raise self.error
            if self.lost:
                error, self.lost = self.lost, None
                raise error
            return {name: values.numpy() for name, values in function(*args).items()}

        future = type("Future", (), {})()
        future.fetch = fetch
        return future

    def join(self):
        self.joined = True


@pytest.fixture
def make(monkeypatch):
    """Each step's loss is the number of its batch, its Examples are two."""
    monkeypatch.setattr(tf.distribute.coordinator, "ClusterCoordinator", Coordinator)

    def step(batch):
        number = tf.cast(batch, tf.float32)
        return {"loss": tf.stack([2 * number, 2.0]), "accuracy": tf.stack([number, 2.0])}

    return lambda *further: CoordinatorSteps(step, tf.distribute.get_strategy(), 2, *further)


@pytest.fixture
def steps(make):
    return make()


def numbers():
    return iter(tf.data.Dataset.range(1000))


def test_each_step_has_a_batch_of_its_own_and_counts_once(steps):
    data = numbers()
    steps(data, 3)
    steps(data, 2)
    totals = {name: values.tolist() for name, values in steps.totals().items()}
    assert totals == {"loss": [2.0 * sum(range(5)), 10.0], "accuracy": [10.0, 10.0]}
    assert steps.means() == {"loss": 2.0, "accuracy": 1.0}
    steps.reset()
    steps(data, 2)
    assert steps.means()["loss"] == 5.5
    assert next(data) == 7, "more was read than was trained on"


def test_the_values_of_a_call_are_those_of_a_step_that_is_done(steps):
    """Also before the results of an epoch arrive: the curve of a short epoch was all zeros."""
    data = iter(tf.data.Dataset.range(4, 1000))
    assert steps(data, 2) == {"loss": 4.0, "accuracy": 2.0}
    assert steps(data, 2) == {"loss": 4.0, "accuracy": 2.0}
    steps.totals()
    steps.reset()
    assert steps(data, 1) == {"loss": 7.0, "accuracy": 3.5}


def test_each_point_of_the_curve_has_the_values_of_its_own_steps(make):
    """They arrive up to eight steps later, and those of the last steps after the epoch."""
    points = []
    curve = TrainingCurve(0, 22, points, None)
    steps, data = make(curve.add_result), numbers()
    for epoch in range(2):
        for batch in range(11):
            curve.on_train_batch_end(batch, steps(data, 1))
        steps.means()
        steps.reset()
        curve.on_epoch_end(epoch)
        # In the second epoch as well.
        assert [(point["step"], point["loss"]) for point in points] == [
            (number + 1, number) for number in range(11 * (epoch + 1))
        ]
    assert [point["accuracy"] for point in points] == [number / 2 for number in range(22)]
    assert {point["steps"] for point in points} == {1}


def test_sums_are_exact_beyond_the_precision_of_float32(steps):
    data = tf.data.Dataset.from_tensor_slices(tf.constant([2**24, 1], tf.int64))
    steps(iter(data), 2)
    assert steps.totals()["accuracy"][0] == 2.0**24 + 1


def test_of_cancelled_steps_the_original_error_comes_first(steps):
    steps(numbers(), 2)
    steps._coordinator.error = tf.errors.CancelledError(None, None, "given up")
    with pytest.raises(tf.errors.CancelledError):
        steps.totals()
    assert steps._coordinator.joined


def test_a_step_whose_result_is_lost_with_its_worker_is_repeated(steps):
    """The worker ends between the step and the copy of its result to the coordinator."""
    steps(numbers(), 3)
    steps._coordinator.lost = tf.errors.UnavailableError(None, None, "from /job:worker")
    assert steps.totals()["accuracy"].tolist() == [0 + 1 + 2, 6.0]
    assert steps._coordinator.waiting == 0
