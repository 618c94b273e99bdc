"""Trainings under a strategy: many in a process, which imports TensorFlow for seconds.

`python -m tests.trainer_module.strategy_runs JOB...` trains each JOB, JSON of a TrainingJob, and
writes its metrics and weights to `model_run_dir`, where `results` reads them. All jobs have the
same strategy.
"""

import json
import os
import sys
from pathlib import Path

import numpy as np

from trainer_module import strategies, weights
from trainer_module.cluster.tf_config import Cluster
from trainer_module.settings import TrainingJob
from trainer_module.training import train_model


def main(arguments):
    jobs = [TrainingJob.model_validate_json(job) for job in arguments]
    cluster = Cluster.from_environ(os.environ)
    if cluster is not None and cluster.serves:
        strategies.serve(cluster)
    # A process can be in a single cluster.
    strategy = strategies.make_strategy(jobs[0].training, cluster)
    strategies.make_strategy = lambda *_: strategy
    for job in jobs:
        train(job, cluster)


def train(job, cluster=None):
    """Train, and let the chief write the metrics and the weights."""
    trained = train_model(job, cluster)
    architecture = trained.setup.architecture
    plain = architecture.plain_model(job.transform)
    weights.gather(trained.model, plain)
    trained.setup.collective.wait_for_all()
    if trained.setup.chief:
        folder = Path(job.model_run_dir)
        (folder / "metrics.json").write_text(json.dumps(trained.metrics))
        values = {variable.name: variable.numpy() for variable in plain.variables}
        np.savez(folder / "weights.npz", **values)
    return trained


def results(job):
    """Return the metrics and the weights of a training: name -> value."""
    folder = Path(job.model_run_dir)
    with np.load(folder / "weights.npz") as arrays:
        return {**json.loads((folder / "metrics.json").read_text()), **arrays}


if __name__ == "__main__":
    main(sys.argv[1:])
    # TensorFlow's regular exit may crash.
    sys.stdout.flush()
    os._exit(0)
