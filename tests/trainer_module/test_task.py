"""The command line of a training: the job it reads and how it ends, without TensorFlow."""

import json
import os
import re
import subprocess
import sys
from types import ModuleType, SimpleNamespace

import pytest

from core import events, progress
from trainer_module import task
from trainer_module.cluster import local
from trainer_module.cluster.tf_config import Cluster

JOB = {
    "train_files": ["train-*"],
    "eval_files": ["eval-*"],
    "transform_graph": "graph",
    "serving_model_dir": "model",
    "model_run_dir": "run",
    "checkpoint_dir": "checkpoints",
    "training": {"epochs": 5, "profile_steps": [2, 4]},
}


@pytest.fixture
def file(tmp_path):
    file = tmp_path / "job.json"
    file.write_text(json.dumps(JOB))
    return str(file)


@pytest.fixture
def training(monkeypatch):
    """A stand-in for `trainer_module.training` that stores the jobs and raises `error`."""
    monkeypatch.delenv("TF_CONFIG", raising=False)
    training = SimpleNamespace(jobs=[], error=None)

    def train(job, cluster):
        training.jobs.append(job)
        if training.error:
            raise training.error

    module = ModuleType("trainer_module.training")
    module.train = train
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return training


def error_line(capsys):
    [line] = capsys.readouterr().err.splitlines()
    return line


def test_it_trains_the_job_of_the_file(file, training):
    assert task.main([file]) == 0
    [job] = training.jobs
    assert (job.training.epochs, job.training.profile_steps) == (5, (2, 4))


def test_a_missing_file_at_a_url_is_one_line_and_exit_code_2(tmp_path, training, capsys):
    assert task.main([f"file://{tmp_path}/job.json"]) == 2
    assert error_line(capsys).startswith(f"file://{tmp_path}/job.json: cannot be read: ")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read: .*No such file"),
        (b"\xff", "Invalid JSON: "),
        (json.dumps({**JOB, "training": {"epoch": 1}}).encode(), "training.epoch: unknown key"),
        (json.dumps({**JOB, "training": {"workers": 2}}).encode(), "training: .*2 workers require"),
    ],
    ids=["missing", "damaged", "unknown key", "contradiction"],
)
def test_a_wrong_file_is_one_line_and_exit_code_2(tmp_path, training, capsys, content, message):
    file = tmp_path / "job.json"
    if content is not None:
        file.write_bytes(content)
    assert task.main([str(file)]) == 2
    assert training.jobs == []
    assert re.match(f"{re.escape(str(file))}: {message}", error_line(capsys))


def test_an_error_of_this_project_is_one_line_and_sigterm_keeps_its_exit_code(
    file, training, capsys
):
    training.error = local.TrainingFailed("worker 1 was\nkilled")
    assert task.main([file]) == 1
    assert error_line(capsys) == "worker 1 was killed"
    training.error = SystemExit(143)
    assert task.main([file]) == 143


def tensorflow_error(kind, message):
    """An error as TensorFlow raises it, without importing TensorFlow."""
    return type(kind, (Exception,), {"__module__": "tensorflow.python.framework.errors_impl"})(
        message
    )


def chain(error, cause):
    error.__cause__ = cause
    return error


REMOTE = "Additional GRPC error information from remote target /job:worker/replica:0/task:0"
RESTARTED = (
    "Device /job:chief/replica:0/task:0/device:CPU:0 current incarnation doesn't match with one in "
    "the group. This usually means this worker has restarted but the collective leader hasn't"
)
WORKERS = {"chief": ["a:1"], "worker": ["b:1"]}
SERVERS = {"chief": ["a:1"], "worker": ["b:1"], "ps": ["c:1"]}
GONE, FAILED = 138, 1


@pytest.mark.parametrize(
    ("error", "cluster", "code"),
    [
        (tensorflow_error("UnavailableError", "Connection reset by peer"), WORKERS, GONE),
        (tensorflow_error("FailedPreconditionError", RESTARTED), WORKERS, GONE),
        (tensorflow_error("InternalError", f"no step\n{REMOTE}"), WORKERS, GONE),
        (
            chain(RuntimeError("not written"), tensorflow_error("UnavailableError", "gone")),
            WORKERS,
            GONE,
        ),
        (tensorflow_error("InvalidArgumentError", "relevant tensor remote_handle"), SERVERS, GONE),
        # A worker beside parameter servers reports its errors and continues.
        (tensorflow_error("InvalidArgumentError", f"no step\n{REMOTE}"), SERVERS, FAILED),
        (tensorflow_error("InvalidArgumentError", "no step"), WORKERS, FAILED),
        (tensorflow_error("UnavailableError", "the bucket"), None, FAILED),
        (RuntimeError("Unavailable"), WORKERS, FAILED),
    ],
    ids=str,
)
def test_the_loss_of_another_process_has_an_exit_code_of_its_own(
    file, training, monkeypatch, capsys, error, cluster, code
):
    if cluster:
        monkeypatch.setenv("TF_CONFIG", Cluster(cluster, "chief", 0).to_json())
    training.error = error
    assert task.main([file]) == code
    lines = capsys.readouterr().err.splitlines()
    assert bool([line for line in lines if "another process of the cluster is gone" in line]) == (
        code == GONE
    )


def test_any_other_error_is_a_traceback_and_an_event(file, training, monkeypatch, caplog):
    receiving, sending = os.pipe()
    monkeypatch.setenv(events.VARIABLE, str(sending))
    training.error = RuntimeError(
        "Graph execution error:\n\nDetected at node div defined at (most recent call last):\n"
        '  File "training.py", line 1804, in fit\n\nno room\n\t [[{{node div}}]]'
    )
    assert task.main([file]) == 1
    [handler] = [h for h in progress.LOGGER.handlers if isinstance(h, events.Sender)]
    progress.LOGGER.removeHandler(handler)
    os.close(sending)
    with os.fdopen(receiving) as pipe:
        assert list(events.receive(pipe)) == [events.Failed("RuntimeError: no room")]
    assert "Traceback (most recent call last)" in caplog.text


def test_only_outside_of_a_cluster_it_starts_one_of_its_own(tmp_path, training, monkeypatch):
    started = []
    monkeypatch.setattr(local, "run", started.append)
    of_two = {"strategy": "multi_worker_mirrored", "workers": 2}
    file = tmp_path / "job.json"
    file.write_text(json.dumps({**JOB, "training": of_two}))
    assert task.main([str(file)]) == 0
    assert (len(started), training.jobs) == (1, [])
    monkeypatch.setenv("TF_CONFIG", Cluster({"worker": ["a:1", "b:1"]}, "worker", 1).to_json())
    assert task.main([str(file)]) == 0
    assert (len(started), training.jobs) == (1, started)


def test_errors_are_reported_before_tensorflow_is_imported():
    code = "import sys, trainer_module.task; print({'tensorflow', 'tf_keras'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
