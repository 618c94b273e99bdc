"""The figures of a training, measured with a clock that the test controls."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.trainer_module.conftest import make_job, summary
from trainer_module import training
from trainer_module.cluster import resources
from trainer_module.loop import measurements
from trainer_module.loop.measurements import MAX_POINTS, Measurements, TrainingCurve

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
    for module in (measurements, training):
        monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(measurements.os, "sched_getaffinity", lambda process: set(range(CPUS)))
    return clock


@pytest.fixture
def measure(clock):
    """Drives the hooks of `Measurements` as a loop does; each step takes `seconds`."""

    class Measure:
        def start(self, first_step=0, so_far=None, batch=32):
            self.so_far = {} if so_far is None else so_far
            self.callback = Measurements(batch, first_step, self.so_far)
            return self

        def steps(self, count, seconds, at_once=1):
            for batch in range(at_once - 1, count, at_once):
                clock.now += seconds * at_once
                self.callback.on_train_batch_end(batch)

        def evaluate(self, epoch, seconds=100.0):
            self.callback.on_test_begin()
            clock.now += seconds
            self.callback.on_epoch_end(epoch)

        def epoch(self, number, count, seconds, **options):
            self.callback.on_epoch_begin(number)
            self.steps(count, seconds, **options)
            self.evaluate(number)
            # What happens between two epochs is no training either.
            clock.now += 50.0

        def figures(self):
            figures = self.callback.summary()
            assert figures.pop("peak_rss_bytes") > 2**20
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


@pytest.mark.parametrize("at_once", [1, 3])
def test_times_and_speed_are_those_of_the_steps_and_not_of_evaluations(measure, at_once):
    measure.start(batch=8)
    measure.epoch(0, 6, 0.5, at_once=at_once)
    measure.epoch(1, 6, 20.0, at_once=at_once)
    assert measure.figures() == expected([3.0, 120.0], 12, batch=8)


def test_a_resumed_training_adds_to_the_earlier_measurements(measure):
    measure.start()
    measure.epoch(0, 4, 1.0)
    measure.callback.on_epoch_begin(1)
    measure.steps(3, 2.0)
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


def record(curve, epochs, steps, at_once=1):
    for _ in range(epochs):
        for step in range(at_once - 1, steps, at_once):
            number = curve.step + at_once
            curve.on_train_batch_end(step, {"loss": float(number), "accuracy": 1 / number})
        curve.on_epoch_end(0, {})


@given(st.integers(1, 4), st.integers(1, 2000), st.integers(0, 1))
def test_the_points_of_the_curve_cover_every_step_once(epochs, steps, resumed):
    points, total = [], epochs * steps
    record(TrainingCurve(0, total, points), epochs - resumed, steps)
    before = [dict(point) for point in points]
    record(TrainingCurve((epochs - resumed) * steps, total, points), resumed, steps)
    assert points[: len(before)] == before
    assert len(points) <= MAX_POINTS + epochs
    assert points[-1]["step"] == total == sum(point["steps"] for point in points)
    assert sum(point["loss"] * point["steps"] for point in points) == pytest.approx(
        total * (total + 1) / 2
    )


def test_the_curve_of_a_short_training_has_a_point_for_each_call():
    points = []
    record(TrainingCurve(0, 3, points), 1, 3)
    assert points == [
        {"step": step, "steps": 1, "loss": step, "accuracy": 1 / step} for step in (1, 2, 3)
    ]
    points = []
    record(TrainingCurve(0, 8, points), 1, 8, at_once=4)
    assert [(point["step"], point["steps"]) for point in points] == [(4, 4), (8, 4)]


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
        """A callback that is called before `Measurements`."""

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
        "cpus": CPUS,
        "parameter_server_bytes": [],
        **trained.metrics,
    }
    assert trained.metrics.keys() == {"loss", "accuracy", "val_loss", "val_accuracy"}


@pytest.mark.slow
def test_a_training_that_cannot_write_its_figures_exports_its_model(prepared, tmp_path, caplog):
    (tmp_path / "run" / "training.json").mkdir(parents=True)
    training.train(make_job(prepared, tmp_path, epochs=2, profile_steps=(2, 3)))
    assert (tmp_path / "model" / "saved_model.pb").exists()
    assert list((tmp_path / "run" / "logs").rglob("*.xplane.pb")), "no profile"
    lines = [record.getMessage() for record in caplog.records]
    beginning = f"{tmp_path}/run/training.json cannot be written"
    assert len([line for line in lines if line.startswith(beginning)]) == 1


def test_memory_is_measured_without_proc(monkeypatch):
    def hidden(self, *arguments, **named):
        raise PermissionError("/proc is hidden")

    monkeypatch.setattr(resources.Path, "read_text", hidden)
    assert resources.peak_rss() > 2**20
