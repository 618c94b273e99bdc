"""Strategies: the strategy for a name on this machine; each of them trains the same model."""

import re
from types import SimpleNamespace

import pytest
import tensorflow as tf

from tests.trainer_module.conftest import (
    check_evaluation,
    learned_negation,
    make_job,
    probabilities,
    run_task,
    summary,
)
from trainer_module import strategies
from trainer_module.cluster.tf_config import Cluster
from trainer_module.settings import Training
from trainer_module.training import train

pytestmark = pytest.mark.slow

WORKERS = {"worker": ["a:1", "b:1"]}
SERVERS = {"chief": ["a:1"], "worker": ["b:1"], "ps": ["c:1"]}


@pytest.fixture(autouse=True)
def _no_tpu(monkeypatch):
    for variable in ("TPU_NAME", "KUBE_GOOGLE_CLOUD_TPU_ENDPOINTS", "TPU_ACCELERATOR_TYPE"):
        monkeypatch.delenv(variable, raising=False)


@pytest.mark.parametrize(
    ("training", "cluster", "line"),
    [
        ({"jit_compile": True}, SERVERS, "a single device, not of parameter_server (auto: "),
        ({"tpu": "local"}, None, "no TPU is reachable at 'local' (training.tpu): "),
        (
            {"strategy": "mirrored"},
            WORKERS,
            "mirrored trains in one process, but TF_CONFIG names a cluster of 2",
        ),
        (
            {"strategy": "multi_worker_mirrored"},
            SERVERS,
            "multi_worker_mirrored, but TF_CONFIG names parameter servers; ",
        ),
        ({"strategy": "parameter_server"}, WORKERS, "needs a TF_CONFIG with chief, worker and ps"),
    ],
    ids=str,
)
def test_a_strategy_without_its_devices_or_cluster_is_an_error(training, cluster, line):
    cluster = cluster and Cluster(cluster, next(iter(cluster)), 0)
    with pytest.raises(ValueError, match=re.escape(line)):
        strategies.make_strategy(Training(**training), cluster)


@pytest.mark.parametrize(
    ("cluster", "expected"),
    [
        (SERVERS, "parameter_server (auto: TF_CONFIG"),
        ({"chief": ["a:1"], "worker": ["b:1"]}, "multi_worker_mirrored (auto: TF_CONFIG"),
        (None, "one_device (auto: no TPU, no TF_CONFIG"),
    ],
    ids=str,
)
def test_auto_takes_the_strategy_of_the_cluster(monkeypatch, log, cluster, expected):
    """Each strategy is replaced by that of one device, because there is no such cluster."""
    one_device = strategies._MAKERS["one_device"]
    monkeypatch.setattr(strategies, "_MAKERS", dict.fromkeys(strategies._MAKERS, one_device))
    strategies.make_strategy(Training(), cluster and Cluster(cluster, "chief", 0))
    assert f"Strategy {expected}" in log.text


@pytest.mark.both_stacks
def test_several_devices_train_a_model_that_learned_and_evaluate_every_example(prepared, tmp_path):
    """For clusters, `test_faults.py` has this test, with the loss of a worker.

    `test_classes.py` compares all strategies with one device.
    """
    training = {"strategy": "mirrored", "batch_size_per_replica": 5, "loop": "custom"}
    done = run_task(make_job(prepared, tmp_path, devices=2, **training), tmp_path)
    assert done.code == 0, done.log
    assert learned_negation(tmp_path)
    check_evaluation(tmp_path)
    figures = summary(tmp_path)
    assert figures["devices"] == [f"CPU:{number}" for number in range(2)]
    assert figures["replicas"] == 2
    assert figures["steps_per_epoch"] == 25
    assert not (tmp_path / "checkpoints").exists()
    # One device sees the same global batches, of which none is short.
    one = tmp_path / "one"
    train(make_job(prepared, one, batch_size_per_replica=10), None)
    assert probabilities(tmp_path) == pytest.approx(probabilities(one), abs=1e-5)


def test_tables_over_256_kib_are_cut_into_at_most_one_shard_for_each_server(monkeypatch):
    made = SimpleNamespace(num_replicas_in_sync=1)
    monkeypatch.setenv("GRPC_FAIL_FAST", "use_caller")
    monkeypatch.setattr(
        tf.distribute,
        "ParameterServerStrategy",
        lambda resolver, variable_partitioner: vars(made).update(cut=variable_partitioner) or made,
    )
    spec = {"chief": ["a:1"], "worker": ["b:1"], "ps": ["c:1", "c:2", "c:3"]}
    strategies.make_strategy(Training(strategy="parameter_server"), Cluster(spec, "chief", 0))
    # Matrices of layers have few rows, whatever their size.
    for shape, shards in [([65_536], [1]), ([1_048_576], [3]), ([4_095, 1_000], [1, 1]), ([], [])]:
        assert list(made.cut(tf.TensorShape(shape), tf.float32)) == shards
