"""run_fn: FnArgs of TFX to a job, and the process or processes that train it."""

import pytest

from core.errors import InputError
from preprocessing.settings import Transform
from tests.trainer_module.conftest import TRANSFORM, fn_args
from trainer_module import run_fn
from trainer_module.settings import Training


def test_a_job_has_all_arguments_of_tfx_and_the_values_of_a_tuner_that_are_not_set(tmp_path):
    args = fn_args(tmp_path, "checkpoints", "base", epochs=7, hyperparameters={"scale_floor": 0.5})
    job = run_fn.make_job(args)
    assert (job.train_files, job.eval_files) == (args.train_files, args.eval_files)
    assert (job.transform_graph, job.base_model) == (str(tmp_path / "graph"), "base")
    assert job.serving_model_dir == str(tmp_path / "model")
    assert job.model_run_dir == str(tmp_path / "run")
    assert job.checkpoint_dir.startswith("checkpoints/")
    assert job.training == Training(epochs=7, hyperparameters={"scale_floor": 0.5})
    assert job.transform == Transform(**TRANSFORM)
    args.hyperparameters = {"values": {"learning_rate": 0.3, "scale_floor": 0.7, "buckets": 2}}
    training = run_fn.make_job(args).training
    assert training.learning_rate == 0.3
    assert training.hyperparameters == {"scale_floor": 0.5, "buckets": 2}
    args.custom_config["training"]["learning_rate"] = 0.1
    assert run_fn.make_job(args).training.learning_rate == 0.1
    assert not job.has_spans
    args.custom_config["has_spans"] = True
    assert run_fn.make_job(args).has_spans


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
    tmp_path, monkeypatch, training, place
):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    trained = []
    monkeypatch.setattr(run_fn, "train", lambda job, cluster: trained.append(("here", job)))
    monkeypatch.setattr(run_fn.local, "run", lambda job: trained.append(("cluster", job)))
    args = fn_args(tmp_path, "checkpoints", **training)
    run_fn.run_fn(args)
    assert trained == [(place, run_fn.make_job(args))]


def test_a_wrong_setting_is_an_error_of_the_input_and_a_defect_is_not(tmp_path, monkeypatch):
    wrong = fn_args(tmp_path, "checkpoints")
    monkeypatch.setenv("TF_CONFIG", "worker")
    with pytest.raises(InputError, match="TF_CONFIG: Invalid JSON"):
        run_fn.run_fn(wrong)
    monkeypatch.delenv("TF_CONFIG")
    monkeypatch.setattr(run_fn, "train", lambda job, cluster: int("no number"))
    with pytest.raises(ValueError, match="invalid literal") as error:
        run_fn.run_fn(wrong)
    assert not isinstance(error.value, InputError)
