"""The Trainer on Kubernetes, with real artifacts and real trainings in the place of pods."""

import json
import signal
import threading
import time

import pytest

from components.trainer.tfjob_settings import TFJOB_KEY, TFJobSettings
from preprocessing.errors import InputError
from tests.trainer_module import conftest
from trainer_module import task

pytestmark = pytest.mark.slow

prepared = conftest.prepared


@pytest.fixture(scope="module")
def executor():
    # Imported under a test that captures the log at INFO, TFX leaves its failed imports there,
    # with all their frames: Python crashes when it frees them.
    from components.trainer.tfjob_executor import TFJobExecutor

    return TFJobExecutor


class Step:
    """The Trainer's step, as TFX runs it."""

    def __init__(self, executor, prepared, folder):
        from tfx.types import standard_artifacts

        self._executor = executor
        examples = standard_artifacts.Examples()
        examples.uri = str(folder / "examples")
        examples.split_names = json.dumps(["train", "eval"])
        for split in ("train", "eval"):
            to = folder / "examples" / f"Split-{split}"
            to.mkdir(parents=True)
            for file in prepared.glob(f"{split}-*.gz"):
                (to / file.name).symlink_to(file)
        graph = standard_artifacts.TransformGraph()
        graph.uri = str(prepared / "graph")
        # On Kubeflow Pipelines a baseline that does not exist is an empty artifact.
        missing = standard_artifacts.Model()
        missing.uri = str(folder / "missing")
        self.inputs = {"examples": [examples], "transform_graph": [graph], "base_model": [missing]}
        model, model_run = standard_artifacts.Model(), standard_artifacts.ModelRun()
        model.uri, model_run.uri = str(folder / "model"), str(folder / "model_run")
        self.outputs = {"model": [model], "model_run": [model_run]}
        self.model = folder / "model" / "Format-Serving"
        self.job_file = folder / "model_run" / "job.json"
        self.checkpoints = folder / "checkpoints"

    def run(self, strategy, epochs, **training):
        settings = TFJobSettings(
            image="registry/reviews:1", namespace="ml", timeout_seconds=400, poll_seconds=0.2
        )
        config = {
            "training": {**conftest.TRAINING, **training},
            "transform": conftest.TRANSFORM,
            "code": "1",
            "checkpoints": str(self.checkpoints),
            TFJOB_KEY: settings.model_dump(),
        }
        properties = {
            "custom_config": json.dumps(config),
            "train_args": json.dumps({"splits": ["train"]}),
            "eval_args": json.dumps({"splits": ["eval"]}),
            "run_fn": "trainer_module.run_fn.run_fn",
            "strategy": strategy,
            "epochs": epochs,
        }
        self._executor().Do(self.inputs, self.outputs, properties)


@pytest.fixture
def step(executor, prepared, tmp_path):
    return Step(executor, prepared, tmp_path)


def kill_worker_after_first_checkpoint(step, operator):
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline:
        if list(step.checkpoints.glob("*/checkpoint")):
            [worker] = [operator.processes[name] for name in operator.running if "worker" in name]
            worker.send_signal(signal.SIGKILL)
            return
        time.sleep(0.02)


def test_two_workers_train_and_a_retried_step_goes_on_where_one_was_killed(step, operator, log):
    import tensorflow as tf

    training = {"workers": 2, "batch_size_per_replica": 8, "checkpoint_steps": 20}
    killer = threading.Thread(
        target=kill_worker_after_first_checkpoint, args=[step, operator], daemon=True
    )
    killer.start()
    with pytest.raises(
        RuntimeError, match=r"^TFJob .* failed: chief ended with exit code 1: [\w.]+Error: "
    ):
        step.run("multi_worker_mirrored", 8, **training)
    assert not step.model.exists()
    [record] = [each for each in log.records if "The last lines of chief" in each.getMessage()]
    assert len(record.getMessage().splitlines()) > 5
    assert "Going on after" not in log.text
    # Not one of the file's names is that of a file half written.
    assert [file.name for file in step.job_file.parent.glob("job.json*")] == ["job.json"]
    assert task.read_job(str(step.job_file)).training.workers == 2

    step.run("multi_worker_mirrored", 8, **training)
    assert "[chief] " in log.text and "[worker 0] " in log.text
    assert "Going on after step" in log.text
    summary = json.loads((step.job_file.parent / "training.json").read_text())
    assert (summary["processes"], summary["replicas"], summary["epochs"]) == (2, 2, 8)
    model = tf.saved_model.load(str(step.model))
    texts = tf.constant(["very good", "not good", "very bad", "not bad"])
    labels = model.signatures["predict_text"](texts=texts)["label"]
    assert labels.numpy().tolist() == [1, 0, 0, 1]
    assert not list(step.checkpoints.glob("*/checkpoint"))


def test_a_wrong_setting_that_the_training_finds_is_the_steps(step, operator):
    with pytest.raises(InputError, match="no_such_thing"):
        step.run("one_device", 1, hyperparameters={"no_such_thing": 1})


def test_a_tfjob_that_leaves_no_model_is_no_success(step, server):
    def succeed(job):
        server.set_condition(job["metadata"]["name"], "Succeeded", "successfully completed.")

    server.on_create = succeed
    with pytest.raises(RuntimeError, match=f"no model in {step.model}"):
        step.run("one_device", 1)
