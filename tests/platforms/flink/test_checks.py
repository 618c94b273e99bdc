"""A setting of Flink that cannot work is one line before anything starts."""

import socket

import pytest

from core.errors import ConfigError
from pipeline.config import load_config
from platforms.checks import check_target
from platforms.flink import rest
from platforms.flink.checks import check_local
from tests.platforms.compiled import settings

JAR = "beam-runners-flink-1.19-job-server-2.74.0.jar"


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Return a function that loads settings on a machine with a jar, with Java or without."""
    (tmp_path / JAR).touch()
    monkeypatch.setenv("PATH", str(tmp_path))

    def function(*overrides, java=True):
        if java:
            (tmp_path / "java").touch(0o755)
        return load(tmp_path, *overrides)

    return function


def load(jars, *overrides):
    keys = ("beam.runner=flink", f"beam.flink.jars={jars}", *overrides)
    return load_config("sample", keys, environ={})


@pytest.fixture
def cluster(monkeypatch):
    """Settings for a cluster with four slots on this machine."""
    get = rest.get
    with socket.create_server(("localhost", 0)) as server:
        address = f"localhost:{server.getsockname()[1]}"

        def answer(at, path):
            return {"slots-total": 4} if at == address else get(at, path)

        monkeypatch.setattr(rest, "get", answer)
        yield f"beam.flink.master={address}", f"beam.flink.worker_pool={address}"


def test_a_machine_and_a_cluster_that_work(machine, cluster, monkeypatch):
    check_local(machine(*cluster))
    monkeypatch.setenv("PATH", "")
    check_local(load_config("sample", ("beam.flink.jars=/missing",), environ={}))


def test_what_the_machine_lacks(machine):
    with pytest.raises(ConfigError, match="no java in PATH"):
        check_local(machine(java=False))
    line = "^beam.flink.jars: /missing contains no Flink runner of Beam; run make flink$"
    with pytest.raises(ConfigError, match=line):
        check_local(load("/missing"))


@pytest.mark.parametrize(
    ("override", "line"),
    [
        ("parallelism=5", "parallelism: 5 is more than the 4 slots of localhost"),
        ("worker_pool=localhost:1", "worker_pool: localhost:1 is not reachable"),
        ("master=localhost:1", "master: localhost:1 does not respond as Flink's"),
        ("job_endpoint=a..b:1", "job_endpoint: a..b:1 is not reachable"),
    ],
)
def test_a_cluster_that_does_not_fit(machine, cluster, override, line):
    with pytest.raises(ConfigError, match=f"^beam.flink.{line}"):
        check_local(machine(*cluster, f"beam.flink.{override}"))


REMOTE = ("beam.flink.master=flink.example:8081",)
SHARED = "beam.flink.shared_paths=true"


@pytest.mark.parametrize(
    ("paths", "line"),
    [
        (("paths.root=gs://bucket/runs", "data.input_base=/mnt/raw"), "data.input_base: /mnt/raw"),
        # The sample is in this installation.
        (("paths.root=gs://bucket/runs",), "data.input_base: /.*/sample_data"),
    ],
)
def test_a_remote_cluster_cannot_read_the_folders_of_this_machine(tmp_path, paths, line):
    remedy = "is not accessible from the TaskManagers of flink.example:8081; set gs://BUCKET"
    with pytest.raises(ConfigError, match=f"^{line} {remedy}"):
        check_target(load(tmp_path, *REMOTE, *paths), "local")


def test_a_remote_cluster_reads_shared_folders_and_buckets(machine, monkeypatch):
    monkeypatch.setattr("platforms.flink.checks._check_cluster", lambda flink: None)
    check_target(machine(*REMOTE, SHARED), "local")
    buckets = ("paths.root=gs://bucket/runs", "data.input_base=gs://bucket/raw")
    check_target(machine(*REMOTE, *buckets), "local")


def test_a_compiled_pipeline_needs_a_cluster_and_its_job_server():
    endpoint = "beam.flink.job_endpoint=jobs.example:8099"
    for master, more, line in (
        (REMOTE[0], "cache=true", r"^beam.flink.job_endpoint: not set, and a compiled"),
        ("beam.flink.master=localhost:1", endpoint, r"^beam.flink.master: localhost:1 is not "),
    ):
        config = settings("kubeflow", more=f"beam.runner=flink,{master},{more}")
        with pytest.raises(ConfigError, match=line):
            check_target(config, "kubeflow")
    more = f"beam.runner=flink,{REMOTE[0]},{endpoint}"
    check_target(settings("kubeflow", more=more), "kubeflow")
