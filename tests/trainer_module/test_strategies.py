"""Strategies: the strategy for a name on this machine; each of them trains the same model."""

import re
from types import SimpleNamespace

import pytest
import tensorflow as tf

from tests.exhaustive import exhaustive
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

CLUSTERS = {
    "auto": {"chief": ["a:1"], "worker": ["b:1"], "ps": ["c:1"]},
    "mirrored": {"worker": ["a:1", "b:1"]},
    "multi_worker_mirrored": {"chief": ["a:1"], "worker": ["b:1"], "ps": ["c:1"]},
    "parameter_server": {"worker": ["a:1", "b:1"]},
}


@pytest.fixture(autouse=True)
def _no_tpu(monkeypatch):
    for variable in ("TPU_NAME", "KUBE_GOOGLE_CLOUD_TPU_ENDPOINTS", "TPU_ACCELERATOR_TYPE"):
        monkeypatch.delenv(variable, raising=False)


@pytest.mark.parametrize(
    ("training", "line"),
    [
        (
            {"jit_compile": True},
            "training.jit_compile: true compiles the step of a single device, not of "
            "parameter_server (auto: ",
        ),
        (
            {"strategy": "tpu"},
            "training.strategy: tpu, but there is no TPU: training.tpu and TPU_NAME are not set, "
            "and this machine has none",
        ),
        ({"tpu": "local"}, "no TPU is reachable at 'local' (training.tpu): "),
        (
            {"strategy": "mirrored"},
            "training.strategy: mirrored trains in one process, but TF_CONFIG names a cluster of 2",
        ),
        (
            {"strategy": "multi_worker_mirrored"},
            "training.strategy: multi_worker_mirrored, but TF_CONFIG names parameter servers; ",
        ),
        (
            {"strategy": "parameter_server"},
            "training.strategy: parameter_server needs a TF_CONFIG with chief, worker and ps tasks",
        ),
    ],
    ids=str,
)
def test_a_strategy_without_its_devices_or_cluster_is_an_error(training, line):
    spec = CLUSTERS.get(training.get("strategy", "auto"))
    spec = None if "tpu" in training else spec
    cluster = spec and Cluster(spec, next(iter(spec)), 0)
    with pytest.raises(ValueError, match=re.escape(line)):
        strategies.make_strategy(Training(**training), cluster)


@pytest.mark.parametrize(
    ("cluster", "expected"),
    [
        ({"chief": ["a:1"], "worker": ["b:1"], "ps": ["c:1"]}, "parameter_server (auto: TF_CONFIG"),
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
@pytest.mark.parametrize(
    "training",
    [
        {"strategy": "mirrored", "devices": 2, "batch_size_per_replica": 5, "loop": "custom"},
        exhaustive({"strategy": "central_storage", "devices": 2, "batch_size_per_replica": 7}),
        exhaustive(
            {
                "strategy": "multi_worker_mirrored",
                "workers": 2,
                "batch_size_per_replica": 8,
                "model": "text_cnn",
                "loop": "custom",
                "learning_rate": 0.08,
                "epochs": 6,
            }
        ),
    ],
    ids=lambda training: "-".join(str(value) for value in training.values()),
)
def test_each_strategy_trains_a_model_that_learned_and_evaluates_every_example(
    prepared, tmp_path, training
):
    """The last batch of 7 or 8 is short, and the shards of the workers differ.

    For clusters, `test_faults.py` has this test, with the loss of a worker.
    """
    done = run_task(make_job(prepared, tmp_path, **training), tmp_path)
    assert done.code == 0, done.log
    assert learned_negation(tmp_path)
    check_evaluation(tmp_path)
    figures = summary(tmp_path)
    assert figures["devices"] == [f"CPU:{number}" for number in range(training.get("devices", 1))]
    assert figures["replicas"] == 2
    # With whole files two workers get 120 and 130 of 250 Examples. The larger share determines
    # the steps of the epoch.
    examples = 130 * 2 if training["strategy"] == "multi_worker_mirrored" else 250
    assert figures["steps_per_epoch"] == -(-examples // (2 * training["batch_size_per_replica"]))
    assert not (tmp_path / "checkpoints").exists()
    if training["strategy"] == "mirrored":
        # One device sees the same global batches, of which none is short.
        one = tmp_path / "one"
        train(make_job(prepared, one, batch_size_per_replica=10))
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
