"""run_fn: FnArgs of TFX to a job, and the process or processes that train it."""

from types import SimpleNamespace

import pytest

from core.errors import InputError
from preprocessing.settings import Transform
from trainer_module import run_fn
from trainer_module.settings import Training


@pytest.fixture
def fn_args(tmp_path):
    def make(**training):
        return SimpleNamespace(
            train_files=["train-*"],
            eval_files=["eval-*"],
            transform_graph_path="graph",
            serving_model_dir="model",
            model_run_dir="run",
            base_model="base",
            hyperparameters=None,
            custom_config={
                "training": training,
                "transform": {"ngrams": 1, "ngram_buckets": 512},
                "code": "1",
                "checkpoints": str(tmp_path / "checkpoints"),
            },
        )

    return make


def test_a_job_has_all_arguments_of_tfx_and_the_values_of_a_tuner_that_are_not_set(
    fn_args, tmp_path
):
    args = fn_args(epochs=7, hyperparameters={"scale_floor": 0.5})
    job = run_fn.make_job(args)
    assert (job.train_files, job.eval_files) == (["train-*"], ["eval-*"])
    assert (job.transform_graph, job.base_model) == ("graph", "base")
    assert (job.serving_model_dir, job.model_run_dir) == ("model", "run")
    assert job.checkpoint_dir.startswith(f"{tmp_path}/checkpoints/")
    assert job.training == Training(epochs=7, hyperparameters={"scale_floor": 0.5})
    assert job.transform == Transform(ngrams=1, ngram_buckets=512)
    args.hyperparameters = {"values": {"learning_rate": 0.3, "scale_floor": 0.7, "buckets": 2}}
    training = run_fn.make_job(args).training
    assert training.learning_rate == 0.3
    assert training.hyperparameters == {"scale_floor": 0.5, "buckets": 2}
    args.custom_config["training"]["learning_rate"] = 0.1
    assert run_fn.make_job(args).training.learning_rate == 0.1


@pytest.mark.parametrize(
    ("training", "place"),
    [
        ({"strategy": "mirrored"}, "here"),
        ({"devices": 2}, "cluster"),
        ({"strategy": "multi_worker_mirrored"}, "cluster"),
        ({"strategy": "parameter_server"}, "cluster"),
    ],
)
def test_several_processes_or_logical_devices_need_processes_of_their_own(
    fn_args, monkeypatch, training, place
):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    trained = []
    monkeypatch.setattr(run_fn, "train", lambda job: trained.append(("here", job)))
    monkeypatch.setattr(run_fn.local, "run", lambda job: trained.append(("cluster", job)))
    run_fn.run_fn(fn_args(**training))
    assert trained == [(place, run_fn.make_job(fn_args(**training)))]


def test_a_wrong_setting_is_an_error_of_the_input_and_a_defect_is_not(fn_args, monkeypatch):
    wrong = fn_args(hyperparameters={"depth": 1})
    monkeypatch.setattr(
        run_fn, "train", lambda job: run_fn.needs_processes(job.training, {"TF_CONFIG": "worker"})
    )
    with pytest.raises(InputError, match="TF_CONFIG: Invalid JSON"):
        run_fn.run_fn(wrong)
    monkeypatch.setattr(run_fn, "train", lambda job: int("no number"))
    with pytest.raises(ValueError, match="invalid literal") as error:
        run_fn.run_fn(wrong)
    assert not isinstance(error.value, InputError)
