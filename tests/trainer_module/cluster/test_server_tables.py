"""The variables that are sharded over parameter servers, and the number of their shards."""

from types import SimpleNamespace

import pytest
import tensorflow as tf

from trainer_module.cluster.tf_config import Cluster
from trainer_module.settings import Training
from trainer_module.strategies import make_strategy

pytestmark = pytest.mark.slow


@pytest.fixture
def pieces(monkeypatch):
    """(shape, servers) -> how many pieces a float32 variable has along each axis."""

    def without_a_cluster(cluster_resolver, variable_partitioner):
        return SimpleNamespace(num_replicas_in_sync=1, partitioner=variable_partitioner)

    def pieces(shape, servers):
        spec = {"chief": ["a:1"], "worker": ["b:1"], "ps": [f"c:{n + 1}" for n in range(servers)]}
        made, _ = make_strategy(Training(strategy="parameter_server"), Cluster(spec, "chief", 0))
        return list(made.partitioner(tf.TensorShape(shape), tf.float32))

    monkeypatch.setenv("GRPC_FAIL_FAST", "use_caller")
    monkeypatch.setattr(tf.distribute, "ParameterServerStrategy", without_a_cluster)
    return pieces


@pytest.mark.parametrize(
    ("shape", "servers", "expected"),
    [
        # 256 KiB stay whole, more is cut.
        ([65_536], 2, [1]),
        ([65_537], 2, [2]),
        ([8_192, 8], 2, [1, 1]),
        ([8_192, 9], 2, [2, 1]),
        # At most one piece a server, and none for less than 256 KiB.
        ([1_048_576], 3, [3]),
        ([1_048_576], 16, [16]),
        ([1_048_576], 100, [16]),
        ([1_048_576], 1, [1]),
        # Matrices of layers have few rows, whatever their size.
        ([4_095, 1_000], 2, [1, 1]),
        ([4_096, 1_000], 2, [2, 1]),
        ([], 2, []),
    ],
)
def test_tables_over_256_kib_are_cut(pieces, shape, servers, expected):
    assert pieces(shape, servers) == expected
