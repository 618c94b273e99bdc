"""The division of the machine among the processes of a local cluster."""

import json
import os
import socket

import pytest

from trainer_module.cluster import resources
from trainer_module.settings import Training


def test_workers_share_the_cores_and_this_process_keeps_its_own(scripted):
    before = os.sched_getaffinity(0)
    scripted.run('note("cores", json.dumps(sorted(os.sched_getaffinity(0))))')
    assert os.sched_getaffinity(0) == before
    first, second = (set(json.loads(text)) for text in scripted.texts("cores").values())
    assert first | second == before or len(before) == 1
    assert not first & second or len(before) == 1


def test_shares_are_neighbours_and_about_as_large():
    assert resources.split_evenly("abcde", 2) == ["ab", "cde"]
    assert resources.split_evenly("ab", 3) == [["a"], ["b"], ["a"]]


def gpus_of_workers():
    places = resources.allocate({"worker": 2})
    return [place.environ.get("CUDA_VISIBLE_DEVICES") for place in places]


@pytest.mark.parametrize(
    ("visible", "expected"),
    [
        (None, ["0,1,2", "3,4,5"]),
        ("GPU-a1, MIG-b", ["GPU-a1", "MIG-b"]),
        ("3,4,5", ["3", "4"]),
        ("4,5,-1,2", ["4", "5"]),
        ("", ["", ""]),
        ("7,8", ["7,8", "7,8"]),
    ],
)
def test_workers_share_the_gpus_that_exist(gpus, monkeypatch, visible, expected):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert gpus_of_workers() == expected


def test_coordinator_and_parameter_servers_have_all_cores_and_no_gpu(gpus, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    allocated = resources.allocate({"chief": 1, "worker": 2, "ps": 1})
    cores = {each.task.name: each.cores for each in allocated}
    assert cores["chief"] is None and cores["ps 0"] is None
    assert cores["worker 0"] | cores["worker 1"] == os.sched_getaffinity(0)
    gpus = [each.environ["CUDA_VISIBLE_DEVICES"] for each in allocated]
    assert gpus == ["", "0", "1", ""]


@pytest.mark.parametrize("nvidia_smi", ["echo no driver", "exec /none"])
def test_without_a_driver_there_is_no_gpu(gpus, monkeypatch, nvidia_smi):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    gpus.write_text(f"#!/bin/sh\n{nvidia_smi}\n")
    assert gpus_of_workers() == ["0", "0"]


def test_no_other_process_can_listen_on_the_port_of_a_process():
    places = resources.allocate({"worker": 2})
    for place in places:
        port = place.port.getsockname()[1]
        assert f'"127.0.0.1:{port}"' in place.environ["TF_CONFIG"]
        with pytest.raises(OSError, match="in use"):
            socket.create_server(("", port))
        place.port.close()
        socket.create_server(("", port)).close()


@pytest.mark.parametrize(
    ("devices", "gpus", "strategy"),
    [
        (None, 1, "one_device"),
        (None, 2, "mirrored"),
        (2, 0, "mirrored"),
        (1, 2, "one_device"),
    ],
)
def test_auto_depends_on_the_devices(devices, gpus, strategy):
    assert Training(devices=devices).resolve_auto(gpus)[0] == strategy


@pytest.mark.parametrize(
    ("tpu", "environ", "address"),
    [
        ("mine", {"TPU_NAME": "other"}, "mine"),
        (None, {"TPU_NAME": "other"}, "other"),
        (None, {"KUBE_GOOGLE_CLOUD_TPU_ENDPOINTS": "grpc://a:1"}, "grpc://a:1"),
        (None, {"TPU_ACCELERATOR_TYPE": "v4"}, "local"),
    ],
)
def test_the_settings_have_priority_over_the_environment_for_the_tpu(tpu, environ, address):
    assert resources.tpu_address(Training(tpu=tpu), environ) == address


def test_connections_to_this_machine_use_no_proxy(monkeypatch):
    monkeypatch.delenv("no_grpc_proxy", raising=False)
    monkeypatch.setenv("no_proxy", "intranet,.example.com")
    [place, _] = resources.allocate({"worker": 2})
    assert place.environ["no_grpc_proxy"] == "intranet,.example.com,127.0.0.1"
