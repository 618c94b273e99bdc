"""Real trainings under the real controllers of training jobs, in which replicas are killed."""

import json
import re
import secrets
import time

import pytest

from platforms.training_jobs import job as training_job
from platforms.training_jobs.job import job_name
from tests.cluster.training_ground import PREAMBLE, Ground, kind_named, skip_without
from tests.exhaustive import exhaustive
from tests.platforms.training_jobs.trainer_step import Step
from tests.trainer_module import conftest
from tests.waiting import in_background
from trainer_module.task import read_job

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1200)]

once, prepared = conftest.once, conftest.prepared
KILLED = """
import subprocess
child = subprocess.Popen([sys.executable, "-m", "trainer_module.task", sys.argv[1]])
signal.signal(signal.SIGTERM, lambda *unused: child.terminate())
while child.poll() is None:
    kill = os.path.join(FOLDER, "kill " + me)
    if os.path.exists(kill):
        os.remove(kill)
        child.kill()
    time.sleep(0.1)
os._exit(child.returncode if child.returncode >= 0 else 128 - child.returncode)
"""
EVICTED = "eviction of worker 0"
MULTI_WORKER = {"workers": 2, "batch_size_per_replica": 8}


@pytest.mark.parametrize(
    ("kind", "strategy", "lost", "training"),
    [
        ("tfjob", "multi_worker_mirrored", ["worker 0"], MULTI_WORKER),
        exhaustive("tfjob", "multi_worker_mirrored", ["chief 0"], MULTI_WORKER),
        exhaustive("tfjob", "multi_worker_mirrored", [EVICTED], MULTI_WORKER),
        exhaustive("tfjob", "parameter_server", ["chief 0"], {"workers": 1}),
        # They were on one node.
        exhaustive("tfjob", "parameter_server", ["ps 0", "worker 0"], {"workers": 1}),
        ("trainjob", "multi_worker_mirrored", ["chief 0"], MULTI_WORKER),
        ("jobset", "parameter_server", ["ps 0"], {"workers": 2}),
        exhaustive("jobset", "parameter_server", ["chief 0"], {"workers": 1}),
        exhaustive("jobset", "parameter_server", ["worker 1"], {"workers": 2}),
    ],
)
def test_a_replica_that_is_killed_costs_a_restart_from_the_last_checkpoint(
    cluster, step_config, prepared, log, monkeypatch, kind, strategy, lost, training
):
    import tensorflow as tf

    skip_without(kind_named(kind))
    monkeypatch.setenv("KUBECONFIG", step_config)
    folder = cluster.folder / secrets.token_hex(4)
    folder.mkdir()
    script = f"FOLDER = {str(folder)!r}{PREAMBLE}{KILLED}"
    monkeypatch.setattr(training_job, "_COMMAND", ("python", "-uc", script))
    ground = Ground(cluster, kind_named(kind), folder)
    step = Step(ground.settings(timeout_seconds=1000.0), prepared, folder)

    def kill():
        while not list(step.checkpoints.glob("*/checkpoint")):
            time.sleep(0.1)
        if lost == [EVICTED]:
            ground.evict({"metadata": {"name": job_name(read_job(str(step.job_file)))}}, "worker 0")
        for replica in lost:
            (folder / f"kill {replica}").touch()

    in_background(kill)
    # Asynchronous updates take more epochs to learn the same.
    epochs = 25 if strategy == "parameter_server" else 8
    step.run(strategy, epochs, checkpoint_steps=20, **training)

    assert any("was restarted" in line for line in log.messages)
    # The training operator fails the whole TFJob after an eviction, and the step starts it again.
    created = [line for line in log.messages if line.startswith("Created ")]
    assert len(created) == (2 if lost == [EVICTED] else 1)
    steps = json.loads((step.job_file.parent / "training.json").read_text())["steps_per_epoch"]
    if lost != ["worker 1"]:
        # On a busy machine the chief may start before the replica that it needs, and start again.
        resumed = re.findall(r"\[chief\] .*Resuming after step (\d+)", log.text)
        assert resumed
        assert all(steps <= int(step) < epochs * steps for step in resumed)

    model = tf.saved_model.load(str(step.model))
    texts = tf.constant(["very good", "not good", "very bad", "not bad"])
    labels = model.signatures["predict_text"](texts=texts)["label"]
    assert labels.numpy().tolist() == [1, 0, 0, 1]
    assert not list(step.checkpoints.glob("*/checkpoint"))
