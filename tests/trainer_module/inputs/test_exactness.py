"""Each Example once in an epoch and once in an evaluation, under every strategy."""

import sys

import numpy as np
import pytest

from preprocessing import features
from tests.trainer_module.conftest import (
    FILES,
    check_evaluation,
    make_job,
    probabilities,
    result,
    run_task,
    run_workers,
    summary,
)
from trainer_module.cluster import local
from trainer_module.inputs.batches import BatchSpec
from trainer_module.inputs.dataset import Split, make_dataset

pytestmark = pytest.mark.slow


@pytest.mark.exhaustive
def test_class_weights_are_those_of_the_whole_train_split(skewed, tmp_path):
    settings = {"strategy": "parameter_server", "workers": 2, "class_weights": "balanced"}
    job = make_job(skewed, tmp_path, epochs=2, **settings)
    done = run_task(job, tmp_path)
    assert done.code == 0, done.log
    check_evaluation(tmp_path, (150 / 120, 150 / 180))


COUNT = """
import json, os, sys
import tensorflow as tf
from trainer_module.cluster.tf_config import Cluster

REPLICAS, INTERRUPTED_AFTER = 2, 3
cluster = Cluster.from_environ(os.environ)
if cluster.serves:
    tf.distribute.Server(
        tf.train.ClusterSpec(cluster.spec),
        job_name=cluster.task_type,
        task_index=cluster.task_index,
        protocol='grpc',
        config=tf.compat.v1.ConfigProto(
            device_count={'CPU': REPLICAS}, inter_op_parallelism_threads=4
        ),
    ).join()

from trainer_module.loop.parameter_server import CoordinatorSteps
from trainer_module.settings import TrainingJob
from trainer_module.strategies import make_strategy
from trainer_module.training_setup import build_model, resolve

job = TrainingJob.model_validate_json(sys.argv[1])
strategy, _ = make_strategy(job.training, cluster)
# As if each worker had several GPUs, with CPU devices in their place.
strategy.extended._num_gpus_per_worker = REPLICAS
type(strategy.extended).worker_devices = [f'/device:CPU:{i}' for i in range(REPLICAS)]
setup = resolve(job, cluster, strategy)
inputs, model = setup.inputs, build_model(setup)

def step(sent):
    data = inputs.parse_on_worker(sent)
    ids = data[0]['ngrams'].flat_values
    seen = tf.math.bincount(tf.cast(ids, tf.int32), minlength=job.transform.ngram_buckets)
    return {**model.train_sums(data), 'seen': tf.cast(seen, tf.float32)}

steps = CoordinatorSteps(step, strategy, cluster.workers)
steps(iter(inputs.train_dataset(0)), INTERRUPTED_AFTER)
steps(iter(inputs.train_dataset(INTERRUPTED_AFTER)), inputs.steps - INTERRUPTED_AFTER)
totals = {name: values.tolist() for name, values in steps.totals().items()}
print('RESULT', json.dumps([inputs.steps, totals]), flush=True)
os._exit(0)
"""


def test_workers_beside_parameter_servers_read_each_example_once_in_an_epoch(prepared, tmp_path):
    """Checked by the occurrences of each n-gram; every review has n-grams of its own."""
    job = make_job(prepared, tmp_path, strategy="parameter_server", workers=2)
    counts = {"chief": 1, "worker": 2, "ps": 1}
    [chief] = run_workers(COUNT, counts, job.model_dump_json())
    taken, totals = result(*chief)
    assert taken == 8
    assert totals["loss"][1] == sum(FILES["train"])
    split = Split.find(job.train_files)
    batches = make_dataset(split, BatchSpec((features.NGRAMS,), job.transform, 50))
    ids = [inputs[features.NGRAMS].flat_values.numpy() for inputs, _ in batches]
    occurrences = np.bincount(np.concatenate(ids), minlength=job.transform.ngram_buckets)
    assert totals["seen"] == occurrences.tolist()


END_AT_STEP_21 = """
import os, signal, sys
from trainer_module import task

if '"chief", "index"' in os.environ.get("TF_CONFIG", "") and sys.argv[1] == "end":
    from trainer_module.loop.callbacks import SaveRegularly
    original = SaveRegularly.on_train_batch_end

    def on_train_batch_end(self, batch, logs=None):
        if self.step == 20:
            os.kill(os.getpid(), signal.SIGTERM)
        original(self, batch, logs)

    SaveRegularly.on_train_batch_end = on_train_batch_end
code = task.main(sys.argv[2:])
os._exit(code)
"""


@pytest.mark.exhaustive
def test_a_resumed_training_under_parameter_servers_equals_an_uninterrupted_one(
    prepared, trained, tmp_path
):
    """With a single worker: several workers execute their steps in any order."""
    job = make_job(prepared, tmp_path, strategy="parameter_server")
    command = [sys.executable, "-c", END_AT_STEP_21]
    with pytest.raises(local.TrainingFailed, match=r"chief was killed \(SIGTERM\)"):
        local.run(job, [*command, "end"])
    assert not (tmp_path / "model").exists()
    local.run(job, [*command, "resume"])
    assert probabilities(tmp_path) == pytest.approx(probabilities(trained), abs=1e-4)
    # Also the steps whose results arrived after those of the loop, shortly before the checkpoint.
    figures = summary(tmp_path)
    assert [point["step"] for point in figures["curve"]] == list(range(1, figures["steps"] + 1))
