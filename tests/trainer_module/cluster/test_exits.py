"""Which errors mean that another process of the cluster is gone."""

import pytest
import tensorflow as tf

from core.errors import InputError
from trainer_module.cluster.exits import is_lost_peer
from trainer_module.cluster.tf_config import Cluster
from trainer_module.task import read_job

CLUSTER = Cluster({"worker": ["localhost:1", "localhost:2"]}, "worker", 0)


def fail(error):
    raise error


@pytest.mark.parametrize(
    ("error", "is_lost"),
    [
        (tf.errors.UnavailableError(None, None, "failed to connect"), True),
        (tf.errors.InternalError(None, None, "heartbeat timeout of task 1"), True),
        (RuntimeError("Connection reset by peer"), True),
        (tf.errors.NotFoundError(None, None, "no such file"), False),
        (InputError("/data/heartbeat/x.gz is damaged"), False),
    ],
)
def test_a_word_in_a_message_of_ours_is_no_sign_of_a_lost_peer(error, is_lost):
    with pytest.raises(type(error)) as raised:
        fail(error)
    assert is_lost_peer(raised.value, CLUSTER) is is_lost
    assert not is_lost_peer(raised.value, None)


def test_a_wrong_path_is_no_sign_of_a_lost_peer():
    with pytest.raises(ValueError, match="cannot be read") as raised:
        read_job("/data/heartbeat/job.json")
    assert not is_lost_peer(raised.value, CLUSTER)
