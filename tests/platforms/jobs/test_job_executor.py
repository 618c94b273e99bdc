"""The Trainer on Kubernetes, with real artifacts, and with processes instead of pods."""

import json
import re
import signal
import threading
import time

import pytest

from core.errors import InputError
from platforms.jobs import follow as job_run
from platforms.jobs.settings import KUBERNETES_JOB_KEY, KubernetesJobSettings
from tests.exhaustive import exhaustive
from tests.trainer_module import conftest

pytestmark = pytest.mark.slow

prepared = conftest.prepared


@pytest.fixture(scope="module")
def executor():
    # If a test captures the log at INFO during this import, the log keeps TFX's failed imports
    # with all their frames, and Python crashes when it frees them.
    from platforms.jobs.trainers import KubernetesExecutor

    return KubernetesExecutor


SMALL_BATCHES = {"batch_size_per_replica": 8}


class Step:
    """The Trainer's step, as TFX runs it."""

    def __init__(self, executor, prepared, folder):
        from tfx.types import standard_artifacts

        from components.baseline import write_no_model

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
        # On Kubeflow Pipelines a baseline that does not exist is an artifact without a model.
        missing = standard_artifacts.Model()
        missing.uri = str(folder / "missing")
        write_no_model(missing)
        self.inputs = {"examples": [examples], "transform_graph": [graph], "base_model": [missing]}
        model, model_run = standard_artifacts.Model(), standard_artifacts.ModelRun()
        model.uri, model_run.uri = str(folder / "model"), str(folder / "model_run")
        self.outputs = {"model": [model], "model_run": [model_run]}
        self.model = folder / "model" / "Format-Serving"
        self.job_file = folder / "model_run" / "job.json"
        self.checkpoints = folder / "checkpoints"

    def platform(self):
        """The part of `custom_config` that the platform adds."""
        settings = KubernetesJobSettings(
            image="registry/reviews:1",
            namespace="ml",
            service_account="trainer",
            timeout_seconds=800,
            refused_seconds=300,
            poll_seconds=0.2,
        )
        return {KUBERNETES_JOB_KEY: settings.model_dump()}

    def run(self, strategy, epochs, **training):
        config = {
            "training": {**conftest.TRAINING, "strategy": strategy, **training},
            "transform": conftest.TRANSFORM,
            "code": "1",
            "checkpoints": str(self.checkpoints),
            **self.platform(),
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


def kill_after_first_checkpoint(step, server, operator, replicas):
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline:
        if list(step.checkpoints.glob("*/checkpoint")):
            [job] = server.jobs.values()
            processes = [operator.process_of(job, each) for each in replicas.split(", ")]
            for process in processes:
                process.send_signal(signal.SIGKILL)
            return
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("kind", "strategy", "lost", "training"),
    [
        exhaustive("tfjob", "multi_worker_mirrored", "worker 0", {"workers": 2, **SMALL_BATCHES}),
        exhaustive("tfjob", "multi_worker_mirrored", "chief", {"workers": 3, **SMALL_BATCHES}),
        exhaustive("tfjob", "parameter_server", "ps 0", {"workers": 2, "parameter_servers": 2}),
        exhaustive("tfjob", "parameter_server", "chief", {"workers": 1}),
        exhaustive("tfjob", "parameter_server", "worker 1", {"workers": 2}),
        exhaustive("trainjob", "multi_worker_mirrored", "chief", {"workers": 2, **SMALL_BATCHES}),
        # They were on one node.
        exhaustive("trainjob", "parameter_server", "ps 0, worker 0", {"workers": 1}),
        ("jobset", "multi_worker_mirrored", "worker 0", {"workers": 2, **SMALL_BATCHES}),
        exhaustive("jobset", "parameter_server", "chief", {"workers": 1}),
    ],
)
def test_a_replica_that_is_killed_costs_a_restart_from_the_last_checkpoint(
    step, server, operator, log, kind, strategy, lost, training
):
    import tensorflow as tf

    # `auto` finds the kind.
    server.kinds = {title: each for title, each in server.kinds.items() if each.name == kind}

    killer = threading.Thread(
        target=kill_after_first_checkpoint, args=[step, server, operator, lost], daemon=True
    )
    killer.start()
    # Asynchronous updates take more epochs to learn the same.
    epochs = 25 if strategy == "parameter_server" else 8
    step.run(strategy, epochs, checkpoint_steps=20, **training)
    killer.join()

    assert len(server.find_requests("POST", f"/{kind}s")) == 1
    [job] = server.jobs.values()
    steps = json.loads((step.job_file.parent / "training.json").read_text())["steps_per_epoch"]
    if lost != "worker 1":
        # On a busy machine the chief may start before the replica that it needs, and start again.
        resumed = re.findall(r"\[chief\] .*Resuming after step (\d+)", log.text)
        assert resumed
        assert all(steps <= int(step) < epochs * steps for step in resumed)
    # No replica is restarted more often than the loss of one replica explains.
    [each] = server.kinds.values()
    assert 1 <= operator.restarts <= 3 * len(each.expected_pods(job))

    model = tf.saved_model.load(str(step.model))
    texts = tf.constant(["very good", "not good", "very bad", "not bad"])
    labels = model.signatures["predict_text"](texts=texts)["label"]
    assert labels.numpy().tolist() == [1, 0, 0, 1]
    assert not list(step.checkpoints.glob("*/checkpoint"))


def test_a_setting_that_the_training_rejects_is_an_error_of_the_step(step, operator):
    with pytest.raises(InputError, match="no_such_thing"):
        step.run("one_device", 1, hyperparameters={"no_such_thing": 1})


def test_a_job_that_succeeds_without_a_model_is_an_error(step, server, monkeypatch):
    def succeed(job):
        server.set_condition(job["metadata"]["name"], "Succeeded", "successfully completed.")

    given, run = [], job_run.run

    def noted(client, manifest, terms):
        given.append((terms.timeout_seconds, terms.refused_seconds, terms.poll_seconds))
        run(client, manifest, terms)

    monkeypatch.setattr(job_run, "run", noted)
    server.on_create = succeed
    with pytest.raises(RuntimeError, match=f"no model in {step.model}"):
        step.run("one_device", 1)
    [job] = server.jobs.values()
    [replica] = job["spec"]["tfReplicaSpecs"].values()
    assert replica["template"]["spec"]["serviceAccountName"] == "trainer"
    assert given == [(800, 300, 0.2)]
