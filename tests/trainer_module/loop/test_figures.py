"""The figures of a training, measured with a clock that the test controls."""

import json

import pytest
import tensorflow as tf
import tf_keras

from tests.trainer_module.conftest import make_job, summary
from trainer_module import training
from trainer_module.loop import usage
from trainer_module.loop.usage import Usage

CPUS = 2
CPU_SECONDS_A_SECOND = 1.5


class Clock:
    """A stand-in for the module `time`."""

    def __init__(self):
        self.now = 1000.0

    def perf_counter(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    for module in (usage, training):
        monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(usage, "_cpu_seconds", lambda: CPU_SECONDS_A_SECOND * clock.now)
    monkeypatch.setattr(usage.os, "sched_getaffinity", lambda process: set(range(CPUS)))
    return clock


@pytest.fixture
def measure(clock):
    """Drives the hooks of `Usage` as a loop does; each step takes `seconds`."""

    class Measure:
        def start(self, log_dir=None, first_step=0, so_far=None, batch=32):
            self.so_far = {} if so_far is None else so_far
            self.usage = Usage(log_dir, batch, first_step, self.so_far)
            self.usage.set_model(tf_keras.Sequential())
            return self

        def steps(self, count, seconds, at_once=1):
            for batch in range(at_once - 1, count, at_once):
                clock.now += seconds * at_once
                self.usage.on_train_batch_end(batch)

        def evaluate(self, epoch, seconds=100.0):
            self.usage.on_test_begin()
            clock.now += seconds
            self.usage.on_epoch_end(epoch)

        def epoch(self, number, count, seconds, **options):
            self.usage.on_epoch_begin(number)
            self.steps(count, seconds, **options)
            self.evaluate(number)
            # What happens between two epochs is no training either.
            clock.now += 50.0

        def figures(self):
            figures = self.usage.summary()
            assert figures.pop("peak_rss_bytes") > 2**20
            assert figures.pop("gpu_utilisation") is None
            assert figures.pop("cpus") == CPUS
            return figures

    return Measure()


def expected(seconds_per_epoch, steps, batch=32):
    seconds = sum(seconds_per_epoch)
    return {
        "seconds_per_epoch": seconds_per_epoch,
        "steps": steps,
        "step_seconds": pytest.approx(seconds / steps),
        "examples_per_second": pytest.approx(steps * batch / seconds),
        "cpu_utilisation": pytest.approx(CPU_SECONDS_A_SECOND / CPUS),
    }


@pytest.mark.parametrize("seconds", [0.5, 3.0, 20.0], ids="a step takes {} s".format)
def test_times_and_speed_are_those_of_the_steps_and_not_of_evaluations(measure, seconds):
    """Whether a step is shorter or longer than the five seconds between two measurements."""
    measure.start()
    measure.epoch(0, 4, seconds)
    measure.epoch(1, 4, 2 * seconds)
    assert measure.figures() == expected([4 * seconds, 8 * seconds], 8)


def test_several_steps_per_execution_are_counted_one_by_one(measure):
    measure.start(batch=8)
    measure.epoch(0, 6, 1.0, at_once=3)
    assert measure.figures() == expected([6.0], 6, batch=8)


def test_a_resumed_training_adds_to_the_earlier_measurements(measure):
    measure.start()
    measure.epoch(0, 4, 1.0)
    measure.usage.on_epoch_begin(1)
    measure.steps(3, 2.0)
    # The checkpoint contains the values up to the measurement before the last one.
    kept = json.loads(json.dumps(measure.so_far))
    assert kept["seconds_per_epoch"] == [4.0, 6.0]
    measure.start(first_step=7, so_far=kept)
    measure.epoch(1, 1, 3.0)
    measure.epoch(2, 4, 1.0)
    assert measure.figures() == expected([4.0, 9.0, 4.0], 12)


def test_a_training_without_steps_has_finite_figures(measure):
    figures = measure.start(first_step=9).figures()
    assert (figures["steps"], figures["seconds_per_epoch"]) == (9, [])
    assert figures["step_seconds"] == figures["examples_per_second"] == 0.0


def test_tensorboard_has_the_figures_of_every_few_seconds(measure, tmp_path):
    measure.start(str(tmp_path), first_step=100, so_far={"seconds_per_epoch": [], "steps": 100})
    measure.epoch(0, 5, 2.0)
    measure.epoch(1, 4, 1.0)
    [file] = map(str, tmp_path.glob("*.v2"))
    shown = {}
    for event in tf.compat.v1.train.summary_iterator(file):
        for value in event.summary.value:
            figure = float(tf.make_ndarray(value.tensor))
            shown.setdefault(value.tag.removeprefix("usage/"), []).append((event.step, figure))
    # Three steps are six seconds, after which the rest of the epoch is measured.
    assert shown["step_seconds"] == [(103, 2.0), (105, 2.0), (109, 1.0)]
    assert shown["examples_per_second"] == [(103, 16.0), (105, 16.0), (109, 32.0)]
    utilisation = [figure for _, figure in shown["cpu_utilisation"]]
    assert utilisation == pytest.approx([CPU_SECONDS_A_SECOND / CPUS] * 3)
    assert all(figure > 2**20 for _, figure in shown["rss_bytes"])


@pytest.mark.slow
def test_training_json_has_the_settings_and_durations_of_a_training(
    records, tmp_path, clock, monkeypatch
):
    monkeypatch.delenv("TF_CONFIG", raising=False)

    class SlowInputs(training.Inputs):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            clock.now += 7.0

    class SlowSteps(training.StopOnNonFiniteLoss):
        """A callback that is called before `Usage`."""

        def on_train_batch_end(self, batch, logs=None):
            super().on_train_batch_end(batch, logs)
            clock.now += 2.0

        def on_test_batch_end(self, batch, logs=None):
            clock.now += 30.0

    monkeypatch.setattr(training, "Inputs", SlowInputs)
    monkeypatch.setattr(training, "StopOnNonFiniteLoss", SlowSteps)
    trained = training.fit(make_job(records, tmp_path, epochs=2), None)
    figures = summary(tmp_path)
    assert figures.pop("peak_rss_bytes") > 2**20
    assert [point["step"] for point in figures.pop("curve")] == list(range(1, 9))
    epochs = figures.pop("epoch_metrics")
    assert len(epochs) == 2
    assert epochs[-1] == trained.metrics
    assert figures == {
        "model": "ngram_linear",
        "strategy": "OneDeviceStrategy",
        "strategy_reason": "as set",
        "processes": 1,
        "devices": ["CPU:0"],
        "replicas": 1,
        "batch_size_per_replica": 16,
        "examples": 64,
        "epochs": 2,
        "steps_per_epoch": 4,
        "steps": 8,
        "prepare_seconds": 7.0,
        "seconds_per_epoch": [8.0, 8.0],
        "seconds": 23.0,
        "step_seconds": 2.0,
        "examples_per_second": 8.0,
        "cpu_utilisation": CPU_SECONDS_A_SECOND / CPUS,
        "gpu_utilisation": None,
        "cpus": CPUS,
        "parameter_server_bytes": [],
        **trained.metrics,
    }
    assert trained.metrics.keys() == {"loss", "accuracy", "val_loss", "val_accuracy"}
