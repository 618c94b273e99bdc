"""A resumed training: it keeps the best weights and the patience of early stopping."""

import os
import re
import signal

import pytest

from tests.exhaustive import exhaustive
from tests.trainer_module.conftest import make_job, run_workers, summary
from trainer_module.loop import callbacks
from trainer_module.training import train_model

pytestmark = pytest.mark.slow

LOSSES = [0.5, 0.1, 0.4, 0.3, 0.3, 0.3, 0.3, 0.3]
"""The losses of the evaluations in their order; the second is the best."""
TRAINING = {"epochs": 8, "early_stopping": 3}
STEPS = 4


class Script:
    """Callbacks with scripted eval losses that record the steps and send SIGTERM at one."""

    def __init__(self, monkeypatch):
        self.steps = []
        self.weights = []
        """The weight after each epoch."""
        self.tests = 0
        self.term_at_step = self.term_at_test = None
        save = callbacks.SaveRegularly

        def on_train_batch_end(callback, batch, logs=None, original=save.on_train_batch_end):
            self.steps.append(batch)
            if len(self.steps) == self.term_at_step:
                os.kill(os.getpid(), signal.SIGTERM)
            original(callback, batch, logs)

        def on_test_begin(callback, logs=None):
            self.tests += 1
            if self.tests == self.term_at_test:
                os.kill(os.getpid(), signal.SIGTERM)

        stop = callbacks.StopOnNonFiniteLoss

        def on_epoch_end(callback, epoch, logs=None, original=stop.on_epoch_end):
            # The first of the callbacks that read the logs, which they share.
            logs["val_loss"] = LOSSES[epoch]
            self.weights.append(callback.model.get_weights())
            original(callback, epoch, logs)

        monkeypatch.setattr(save, "on_train_batch_end", on_train_batch_end)
        monkeypatch.setattr(save, "on_test_begin", on_test_begin)
        monkeypatch.setattr(stop, "on_epoch_end", on_epoch_end)

    def train_until_it_ends(self, job):
        with pytest.raises(SystemExit) as ended:
            train_model(job, None)
        assert ended.value.code == 143
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


@pytest.fixture
def script(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    return Script(monkeypatch)


@pytest.fixture(scope="module")
def best(records, tmp_path_factory):
    """Return the weights after the best epoch of an uninterrupted training."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        script = Script(monkeypatch)
        train_model(make_job(records, tmp_path_factory.mktemp("best"), **TRAINING), None)
    return script.weights[1]


def check_weights(trained, best):
    for one, other in zip(trained.model.get_weights(), best, strict=True):
        assert one == pytest.approx(other, abs=1e-5)


@pytest.mark.parametrize(
    ("loop", "step"),
    # The second training ends after the epoch that was interrupted.
    [exhaustive("custom", STEPS * 3 + 2), ("fit", STEPS * 4 + 3)],
)
def test_early_stopping_resumes_with_its_best_weights_and_its_patience(
    records, tmp_path, script, best, loop, step
):
    job = make_job(records, tmp_path, loop=loop, **TRAINING)
    script.term_at_step = step
    script.train_until_it_ends(job)
    check_weights(train_model(job, None), best)
    # The best epoch is the second one, after three more without a better one it is over.
    assert len(script.steps) == STEPS * 5
    figures = summary(tmp_path)
    assert figures["val_loss"] == 0.1
    assert figures["steps"] == STEPS * 5
    assert len(figures["seconds_per_epoch"]) == 5


def test_a_kill_before_the_export_trains_no_further(records, tmp_path, script, best):
    job = make_job(records, tmp_path, **TRAINING)
    train_model(job, None)
    assert len(script.steps) == STEPS * 5
    check_weights(train_model(job, None), best)
    assert len(script.steps) == STEPS * 5, "it trained beyond the stop"
    figures = summary(tmp_path)
    assert (figures["val_loss"], figures["steps"]) == (0.1, STEPS * 5)
    assert figures["examples_per_second"] > 0


def test_sigterm_in_an_evaluation_ends_the_training_after_it(records, tmp_path, script, best):
    job = make_job(records, tmp_path, **TRAINING)
    script.term_at_test = 2
    script.train_until_it_ends(job)
    assert len(script.steps) == STEPS * 2
    check_weights(train_model(job, None), best)
    assert (script.tests, len(script.steps)) == (5, STEPS * 5), "it was not repeated"


@pytest.mark.parametrize("classes", [5, exhaustive(2), exhaustive(77)])
def test_a_resumed_training_drops_the_same_units(records_of, tmp_path, script, classes):
    def trained(place):
        training = {"model": "text_cnn", "hyperparameters": {"dropout": 0.5}}
        return train_model(make_job(records_of(classes), tmp_path / place, **training), None)

    script.term_at_step = STEPS + 2
    with pytest.raises(SystemExit):
        trained("parts")
    check_weights(trained("parts"), trained("whole").model.get_weights())


SLOW = """
import os, signal, sys, time
from trainer_module import task
from trainer_module.loop import callbacks
original = callbacks.StopOnNonFiniteLoss.on_train_batch_end
def slow(self, batch, logs=None):
    original(self, batch, logs)
    time.sleep(1)
    if self.step == 6 and '"index": 1' in os.environ["TF_CONFIG"]:
        print("SIGNALLED", flush=True)
        os.kill(os.getpid(), signal.SIGTERM)
callbacks.StopOnNonFiniteLoss.on_train_batch_end = slow
code = task.main(sys.argv[1:])
sys.stderr.flush()
os._exit(code)
"""


def test_workers_with_slow_steps_end_after_a_step_or_two(prepared, tmp_path):
    """Workers vote about once a second, whatever the duration of a step; here it is a second."""
    settings = {"workers": 2, "batch_size_per_replica": 4}
    job = make_job(prepared, tmp_path, strategy="multi_worker_mirrored", **settings)
    file = tmp_path / "job.json"
    file.write_text(job.model_dump_json())
    codes, logs = zip(*run_workers(SLOW, {"worker": 2}, str(file)), strict=True)
    assert codes == (143, 143), logs
    assert "SIGNALLED" in logs[1]
    saved = [
        int(step) for log in logs for step in re.findall(r"SIGTERM: saved after step (\d+)", log)
    ]
    assert len(saved) == 2
    assert saved[0] == saved[1] <= 6 + 1
