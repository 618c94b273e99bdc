"""Strategies: the strategy for a name on this machine; each of them trains the same model."""

import json
import subprocess
import sys
from types import SimpleNamespace

import pytest
import tensorflow as tf

from tests.exhaustive import exhaustive
from tests.trainer_module.conftest import (
    FILES,
    learned_negation,
    make_job,
    predict,
    run_task,
    summary,
)
from trainer_module import strategies
from trainer_module.cluster.tf_config import Cluster
from trainer_module.settings import Training

pytestmark = pytest.mark.slow

MAKE = """
import json, os, sys
from trainer_module.cluster.tf_config import Cluster
from trainer_module.settings import Training
from trainer_module.strategies import make_strategy
from absl import logging
logging.set_verbosity(logging.INFO)
try:
    training = Training(**json.loads(sys.argv[1]))
    strategy, _ = make_strategy(training, Cluster.from_environ(os.environ))
    print('RESULT', type(strategy).__name__, strategy.num_replicas_in_sync)
except ValueError as error:
    print('RESULT', error)
"""


def strategy(environ=None, **training):
    """(class name and replicas, or the error; the log); devices are set up once per process."""
    done = subprocess.run(
        [sys.executable, "-c", MAKE, json.dumps(training)],
        env=environ,
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert done.returncode == 0, done.stderr
    [line] = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    return line.removeprefix("RESULT "), done.stderr


@pytest.mark.parametrize(
    ("training", "expected", "reason"),
    [
        exhaustive({}, "OneDeviceStrategy 1", "auto: no TPU, no TF_CONFIG, 0 GPUs"),
        ({"devices": 2}, "MirroredStrategy 2", "training.devices 2"),
        exhaustive({"strategy": "mirrored"}, "MirroredStrategy 1", "as set"),
        ({"strategy": "central_storage", "devices": 3}, "CentralStorageStrategy 3", "as set"),
    ],
)
def test_names_on_a_machine_without_gpus(training, expected, reason, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    made, log = strategy(**training)
    assert made == expected
    assert reason in log


def test_tpu_without_a_tpu_is_an_error_that_names_the_settings(monkeypatch):
    monkeypatch.delenv("TPU_NAME", raising=False)
    made, _ = strategy(strategy="tpu")
    assert made == (
        "training.strategy: tpu, but there is no TPU: training.tpu and TPU_NAME are not set, and "
        "this machine has none"
    )


def test_an_unreachable_tpu_is_an_error_but_not_for_auto(monkeypatch):
    made, _ = strategy(strategy="tpu", tpu="local")
    assert made.startswith("no TPU is reachable at 'local' (training.tpu): ")
    made, log = strategy(tpu="local")
    assert made == "OneDeviceStrategy 1"
    assert "auto: no TPU is reachable at 'local'" in log


def test_a_strategy_of_one_process_is_refused_in_a_cluster(monkeypatch):
    cluster = {"worker": ["127.0.0.1:2001", "127.0.0.1:2002"]}
    config = {"cluster": cluster, "task": {"type": "worker", "index": 0}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))
    made, _ = strategy(strategy="mirrored")
    assert made.startswith("training.strategy: mirrored trains in one process, but TF_CONFIG")


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
    for variable in ("TPU_NAME", "KUBE_GOOGLE_CLOUD_TPU_ENDPOINTS", "TPU_ACCELERATOR_TYPE"):
        monkeypatch.delenv(variable, raising=False)
    for name in strategies._MAKERS:
        monkeypatch.setitem(strategies._MAKERS, name, strategies._one_device)
    strategies.make_strategy(Training(), cluster and Cluster(cluster, "chief", 0))
    assert f"Strategy {expected}" in log.text


@pytest.mark.both_stacks
@pytest.mark.parametrize(
    "training",
    [
        {"strategy": "mirrored", "devices": 3, "batch_size_per_replica": 7, "loop": "custom"},
        {"strategy": "central_storage", "devices": 2, "batch_size_per_replica": 8},
        {
            "strategy": "multi_worker_mirrored",
            "workers": 2,
            "batch_size_per_replica": 8,
            "model": "cnn_lstm",
            "loop": "custom",
            "learning_rate": 0.08,
            "epochs": 6,
        },
        {"strategy": "parameter_server", "workers": 2, "parameter_servers": 2},
    ],
    ids=lambda training: "-".join(str(value) for value in training.values()),
)
def test_each_strategy_trains_a_model_that_learned(prepared, tmp_path, training):
    done = run_task(make_job(prepared, tmp_path, **training), tmp_path)
    assert done.code == 0, done.log
    assert learned_negation(tmp_path)
    figures = summary(tmp_path)
    examples = sum(FILES["train"])
    assert figures["devices"] == [f"CPU:{number}" for number in range(training.get("devices", 1))]
    replicas = training.get("devices") or training["workers"]
    if training["strategy"] == "parameter_server":
        assert figures["processes"] == 5
        assert figures["steps_per_epoch"] == 16
    else:
        assert figures["replicas"] == replicas
        per_step = replicas * training["batch_size_per_replica"]
        # With whole files two workers get 120 and 130 of 250 Examples. The larger share determines
        # the steps of the epoch.
        most = 130 * 2 if training["strategy"] == "multi_worker_mirrored" else examples
        assert figures["steps_per_epoch"] == -(-most // per_step)
    assert not (tmp_path / "checkpoints").exists()
    assert not list((tmp_path / "run").glob("scratch-*"))


def test_two_replicas_of_half_the_batch_are_one_of_the_whole(prepared, tmp_path):
    """Mirrored over two devices sees the same global batches as one device."""
    one, two = tmp_path / "one", tmp_path / "two"
    common = {"epochs": 1, "shuffle_buffer": 1}
    done = run_task(make_job(prepared, one, batch_size_per_replica=10, **common), one)
    assert done.code == 0, done.log
    job = make_job(
        prepared, two, strategy="mirrored", devices=2, batch_size_per_replica=5, **common
    )
    done = run_task(job, two)
    assert done.code == 0, done.log
    texts = ["very good number3", "not bad", "bad"]
    expected = predict(one, texts)["probability"].numpy()
    assert predict(two, texts)["probability"].numpy() == pytest.approx(expected, abs=1e-5)


@pytest.fixture
def pieces(monkeypatch):
    """(shape, servers) -> how many pieces a float32 variable has along each axis."""

    def without_a_cluster(cluster_resolver, variable_partitioner):
        return SimpleNamespace(num_replicas_in_sync=1, partitioner=variable_partitioner)

    def pieces(shape, servers):
        spec = {"chief": ["a:1"], "worker": ["b:1"], "ps": [f"c:{n + 1}" for n in range(servers)]}
        made, _ = strategies.make_strategy(
            Training(strategy="parameter_server"), Cluster(spec, "chief", 0)
        )
        return list(made.partitioner(tf.TensorShape(shape), tf.float32))

    monkeypatch.setenv("GRPC_FAIL_FAST", "use_caller")
    monkeypatch.setattr(tf.distribute, "ParameterServerStrategy", without_a_cluster)
    return pieces


@pytest.mark.parametrize(
    ("shape", "servers", "expected"),
    [
        # 256 KiB stay whole, more is cut.
        ([65_536], 2, [1]),
        ([8_192, 9], 2, [2, 1]),
        # At most one piece a server, and none for less than 256 KiB.
        ([1_048_576], 3, [3]),
        ([1_048_576], 100, [16]),
        # Matrices of layers have few rows, whatever their size.
        ([4_095, 1_000], 2, [1, 1]),
        ([4_096, 1_000], 2, [2, 1]),
        ([], 2, []),
    ],
)
def test_tables_over_256_kib_are_cut(pieces, shape, servers, expected):
    assert pieces(shape, servers) == expected
