"""The Tuner: the number of trials, the training of each, and the best one."""

from types import SimpleNamespace

import pytest

from tests.trainer_module.conftest import TRAINING, fn_args
from trainer_module import tuner
from trainer_module.models import ngram_linear

pytestmark = pytest.mark.slow


def tuner_args(records, folder, **training):
    """Return the arguments of TFX, in which a Tuner has no folders of a model."""
    training = {**TRAINING, "learning_rate": None, **training}
    args = fn_args(records, folder / "checkpoints", "base", **training)
    vars(args).update(working_dir=str(folder), serving_model_dir=None, model_run_dir=None)
    return args


@pytest.fixture
def jobs(monkeypatch):
    """The jobs of all trials, which train nothing; the eval loss is the smoothing."""
    jobs, removed = [], []

    def train_model(job, cluster):
        assert cluster is None
        jobs.append(job)
        loss = job.training.hyperparameters["scale_smoothing"]
        checkpoints = SimpleNamespace(remove=lambda: removed.append(job))
        return SimpleNamespace(metrics={"val_loss": loss, "loss": -loss}, checkpoints=checkpoints)

    monkeypatch.setattr(tuner, "train_model", train_model)
    yield jobs
    assert removed == jobs


def test_each_trial_is_a_training_on_one_device_and_the_least_eval_loss_is_the_best(
    records, tmp_path, jobs
):
    args = tuner_args(
        records,
        tmp_path,
        tuner_trials=5,
        strategy="multi_worker_mirrored",
        workers=2,
        hyperparameters={"scale_floor": 0.5},
        learning_rate=0.015,
        epochs=7,
    )
    found = tuner.tuner_fn(args)
    found.tuner.search(**found.fit_kwargs)
    for job in jobs:
        assert (job.training.strategy, job.training.workers) == ("one_device", 1)
        assert (job.training.epochs, job.base_model) == (7, None)
        assert job.train_files == args.train_files
        # A value that is set is not tried.
        assert job.training.learning_rate == 0.015
        assert job.training.hyperparameters["scale_floor"] == 0.5
    assert len({place for job in jobs for place in (job.model_run_dir, job.checkpoint_dir)}) == 10
    smoothings = [job.training.hyperparameters["scale_smoothing"] for job in jobs]
    assert len(set(smoothings)) == 5
    [best] = found.tuner.get_best_hyperparameters()
    assert best.values.keys() == {"length_power", "scale_smoothing"}
    assert best.values["scale_smoothing"] == min(smoothings)


@pytest.mark.parametrize("successes", [0, 2])
def test_only_the_failure_of_every_trial_is_an_error(
    records, tmp_path, jobs, monkeypatch, successes
):
    train_model = tuner.train_model
    numbers = iter(range(4))

    def fails_later(job, cluster):
        if next(numbers) >= successes:
            raise ValueError("the loss is nan\nin step 3")
        return train_model(job, cluster)

    monkeypatch.setattr(tuner, "train_model", fails_later)
    found = tuner.tuner_fn(tuner_args(records, tmp_path, tuner_trials=4))
    if successes:
        found.tuner.search(**found.fit_kwargs)
        assert found.tuner.get_best_hyperparameters()
    else:
        with pytest.raises(
            ValueError,
            match=r"^every trial of the Tuner failed, the last one with ValueError: the loss",
        ):
            found.tuner.search(**found.fit_kwargs)
    assert len(jobs) == successes
    assert list(numbers) == [], "a trial is missing"


def test_nothing_to_try_is_an_error(records, tmp_path):
    values = dict.fromkeys(ngram_linear.SEARCH_SPACE.keys() - {"learning_rate"}, 0.5)
    with pytest.raises(ValueError, match=r"training.tuner_trials: 2, but .* remove one of learn"):
        args = tuner_args(
            records, tmp_path, tuner_trials=2, hyperparameters=values, learning_rate=0.1
        )
        tuner.tuner_fn(args)
