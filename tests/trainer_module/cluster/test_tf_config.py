"""TF_CONFIG: its contents, and errors of one line for malformed values."""

import json

import pytest

from trainer_module.cluster.tf_config import Cluster


def read(value):
    text = value if isinstance(value, str) else json.dumps(value)
    return Cluster.from_environ({"TF_CONFIG": text})


def config(kind, index, **counts):
    cluster = {name: [f"{name}{i}.jobs:2222" for i in range(n)] for name, n in counts.items()}
    return {"cluster": cluster, "task": {"type": kind, "index": index}}


@pytest.mark.parametrize(
    "value",
    [
        "",
        {},
        {"cluster": {}},
        {"cluster": {"worker": []}, "task": {"type": "worker", "index": 0}},
        config("chief", 0, chief=1),
        config("worker", 0, worker=1),
    ],
)
def test_one_process_alone_is_no_cluster(value):
    assert read(value) is None


@pytest.mark.parametrize(
    ("kind", "index", "counts", "chief", "serves", "workers", "name"),
    [
        # Without a chief, worker 0 is the chief.
        ("worker", 0, {"worker": 2}, True, False, 2, "worker 0"),
        ("worker", 1, {"worker": 2}, False, False, 2, "worker 1"),
        # Without parameter servers, the chief is a worker too.
        ("chief", 0, {"chief": 1, "worker": 2}, True, False, 3, "chief"),
        ("worker", 0, {"chief": 1, "worker": 2}, False, False, 3, "worker 0"),
        # With parameter servers, the workers serve the chief.
        ("chief", 0, {"chief": 1, "worker": 2, "ps": 3}, True, False, 2, "chief"),
        ("worker", 0, {"chief": 1, "worker": 2, "ps": 3}, False, True, 2, "worker 0"),
        ("ps", 0, {"chief": 1, "worker": 2, "ps": 3}, False, True, 2, "ps 0"),
    ],
)
def test_the_role_of_a_task_follows_from_the_cluster(
    kind, index, counts, chief, serves, workers, name
):
    task = read(config(kind, index, **counts))
    assert (task.chief, task.serves, task.workers, task.name) == (chief, serves, workers, name)
    assert task.processes == sum(counts.values())
    assert task.has_parameter_servers == ("ps" in counts)
    assert read(task.to_json()) == task


def test_an_index_may_be_text_addresses_ipv6_and_other_keys_are_left_alone():
    value = config("worker", "1", worker=1) | {"environment": "cloud", "job": {"a": [1]}}
    value["cluster"]["worker"] += ["[fe80::1]:2222"]
    assert (read(value).workers, read(value).task_index) == (2, 1)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("worker", 'Invalid JSON: .*; a correct value is {"cluster": {"worker"'),
        ({"cluster": {"a\nb": []}}, "cluster.a b: unknown value"),
        ({"task": {"type": "worker", "index": 0}}, "cluster: is missing; a correct value is"),
        (config("evaluator", 0, worker=2), "task.type: unknown value 'evaluator', known are"),
        (
            {"cluster": {"worker": ["a:1", "b:1"]}},
            'no task of this process; .* {"type": "worker", "index": 0}',
        ),
        (config("worker", 2, worker=2), "task worker 2 is not in .*, which has 2 worker from 0"),
        (config("worker", -1, worker=2), "task.index: must be at least 0, not -1"),
    ],
)
def test_a_malformed_value_is_an_error_of_one_line(value, message):
    with pytest.raises(ValueError, match=message) as error:
        read(value)
    assert str(error.value).startswith("TF_CONFIG: ")
    assert len(str(error.value).splitlines()) == 1
