"""Trainings with two classes and with more: strategies, loops, precision, XLA, resume, Tuner."""

import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from tests.exhaustive import exhaustive
from tests.trainer_module import strategy_runs
from tests.trainer_module.conftest import fn_args, make_job, run_workers
from trainer_module import tuner
from trainer_module.run_fn import make_job as make_run_job

pytestmark = pytest.mark.slow

SMALL = {
    "cnn_lstm": {"embedding_width": 8, "filters": 8, "lstm_units": 8, "recurrent_dropout": 0.0},
    "deep_averaging": {"width": 8, "ngram_dropout": 0.0, "dropout": 0.0},
    "ngram_linear": {},
    "text_cnn": {"embedding_width": 8, "filters": 8, "dropout": 0.0},
    "transformer": {
        "width": 8,
        "layers": 1,
        "heads": 2,
        "feed_forward_width": 8,
        "dropout": 0.0,
    },
    "wide_and_deep": {
        "pyramids": 2,
        "embedding_width": 8,
        "filters": 8,
        "blocks": 2,
        "word_dropout": 0.0,
        "dropout": 0.0,
    },
}
"""Small models without dropout, whose random numbers are others for each replica."""
FEW = [("ngram_linear", 2), ("ngram_linear", 5), ("ngram_linear", 77)]
MANY = [("wide_and_deep", 5), ("deep_averaging", 5), ("ngram_linear", 1000)]
"""The tables of 77 and of 1,000 classes are cut over the parameter servers."""
CLUSTERS = {
    "multi_worker_mirrored": {"worker": 2},
    # A worker, because several execute their steps in any order.
    "parameter_server": {"chief": 1, "worker": 1, "ps": 2},
}
REPLICAS = {"mirrored": 2, "central_storage": 2, "multi_worker_mirrored": 2, "parameter_server": 1}


def job_of(records_of, folder, model, classes, **training):
    """Return a job whose global batch is the whole train split, so its order has no effect."""
    folder = folder / f"{model}-{classes}"
    replicas = REPLICAS.get(training.get("strategy"), 1)
    settings = {
        "model": model,
        "hyperparameters": SMALL[model],
        "epochs": 4,
        "batch_size_per_replica": max(64, classes + classes % 2) // replicas,
        # Adam divides by the size of a gradient, so with a large rate it would magnify rounding.
        "learning_rate": 0.3 if model == "ngram_linear" else 0.03,
        **training,
    }
    return make_job(records_of(classes), folder, **settings)


@pytest.fixture(scope="module")
def one_device(records_of, tmp_path_factory):
    """Return a function: (model, classes) -> the results of a training on one device."""
    folder = tmp_path_factory.mktemp("one_device")
    done = {}

    def one_device(model, classes):
        if (model, classes) not in done:
            job = job_of(records_of, folder, model, classes)
            strategy_runs.train(job)
            done[model, classes] = strategy_runs.results(job)
        return done[model, classes]

    return one_device


def check_results(found, expected, case):
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        message = f"{name} of {case}"
        np.testing.assert_allclose(found[name], value, rtol=1e-4, atol=1e-5, err_msg=message)


@pytest.mark.parametrize("cases", [FEW, exhaustive(MANY)], ids=["few", "many"])
@pytest.mark.parametrize(
    "strategy",
    [
        exhaustive("central_storage"),
        *(strategy for strategy in REPLICAS if strategy != "central_storage"),
    ],
)
def test_each_strategy_has_the_results_of_one_device(
    records_of, one_device, tmp_path, strategy, cases
):
    """The weights after four steps, and the metrics, of which the last batch is short or empty."""
    devices = {"devices": 2} if strategy in ("mirrored", "central_storage") else {}
    jobs = [
        job_of(records_of, tmp_path, *case, strategy=strategy, loop="custom", **devices)
        for case in cases
    ]
    arguments = [job.model_dump_json() for job in jobs]
    if strategy in CLUSTERS:
        script = "import os, sys\nfrom tests.trainer_module import strategy_runs\n"
        script += "strategy_runs.main(sys.argv[1:])\nsys.stdout.flush()\nos._exit(0)"
        for code, log in run_workers(script, CLUSTERS[strategy], *arguments):
            assert code == 0, log
    else:
        command = [sys.executable, "-m", "tests.trainer_module.strategy_runs", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr
    for case, job in zip(cases, jobs, strict=True):
        check_results(strategy_runs.results(job), one_device(*case), case)


@pytest.mark.parametrize(
    "model", ["ngram_linear", *(exhaustive(name) for name in SMALL if name != "ngram_linear")]
)
def test_xla_has_the_results_of_the_plain_step(records_of, one_device, tmp_path, model):
    job = job_of(records_of, tmp_path, model, 5, jit_compile=True, loop="fit")
    strategy_runs.train(job)
    check_results(strategy_runs.results(job), one_device(model, 5), model)


@pytest.mark.parametrize(
    ("model", "precision"),
    [
        ("text_cnn", "float16"),
        *(
            exhaustive(model, precision)
            for model in SMALL
            for precision in ("float16", "bfloat16")
            if (model, precision) != ("text_cnn", "float16")
        ),
    ],
)
def test_mixed_precision_has_about_the_same_results(
    records_of, one_device, tmp_path, model, precision
):
    # The first two steps are skipped: their gradients overflow with the first scale of the loss.
    skips = {"epochs": 6} if (model, precision) == ("transformer", "float16") else {}
    job = job_of(records_of, tmp_path, model, 5, mixed_precision=precision, **skips)
    strategy_runs.train(job)
    found, expected = strategy_runs.results(job), one_device(model, 5)
    assert found["val_loss"] == pytest.approx(expected["val_loss"], rel=0.05)
    assert all(np.isfinite(values).all() for values in found.values())


@pytest.mark.exhaustive
def test_the_tuner_tries_values_with_many_classes(records_of, tmp_path):
    job = job_of(records_of, tmp_path, "ngram_linear", 5, tuner_trials=2, learning_rate=None)
    arguments = SimpleNamespace(
        **fn_args(records_of(5), tmp_path, **job.training.model_dump()).__dict__,
        working_dir=str(tmp_path),
    )
    found = tuner.tuner_fn(arguments)
    found.tuner.search(**found.fit_kwargs)
    [best] = found.tuner.get_best_hyperparameters()
    scores = [trial.score for trial in found.tuner.oracle.trials.values()]
    assert len(scores) == 2
    arguments.hyperparameters = best.get_config()
    chosen = make_run_job(arguments)
    assert chosen.training.hyperparameters.items() <= best.values.items()
    strategy_runs.train(chosen)
    assert strategy_runs.results(chosen)["val_loss"] == pytest.approx(min(scores), rel=1e-5)
