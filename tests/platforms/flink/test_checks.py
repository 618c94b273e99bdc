"""A setting of Flink that cannot work is one line before anything starts."""

import json
import socket
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from core.errors import ConfigError
from pipeline.config import load_config
from platforms.flink.checks import check_local, check_paths
from platforms.targets import check_target
from tests.platforms.settings import settings

JARS = {
    "of Maven": "beam-runners-flink-1.19-2.62.0.jar",
    "of Beam": "beam-runners-flink-1.19-job-server-2.74.0.jar",
}


@pytest.fixture(params=JARS.values(), ids=JARS)
def machine(request, tmp_path, monkeypatch):
    """Return a function that makes a machine with the jars and with a Java of a version."""
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / request.param).touch()

    def function(java):
        folder = tmp_path / "bin"
        folder.mkdir()
        if java:
            (folder / "java").write_text(f"#!/bin/sh\necho 'openjdk version \"{java}\"' >&2\n")
            (folder / "java").chmod(0o755)
        monkeypatch.setenv("PATH", str(folder))
        # The name of the machine that runs this test may have no address.
        monkeypatch.setattr(socket, "gethostname", lambda: "localhost")
        return tmp_path / "jars"

    return function


def load(jars, *overrides):
    keys = ("beam.runner=flink", f"beam.flink.jars={jars}", *overrides)
    return load_config("sample", keys, environ={})


@pytest.mark.parametrize("version", ["11.0.2", "17.0.15", "21"])
def test_a_machine_with_java_and_the_jars(machine, version):
    check_local(load(machine(version)))


def test_without_flink_nothing_is_required(monkeypatch):
    monkeypatch.setenv("PATH", "")
    check_local(load_config("sample", ("beam.flink.jars=/missing",), environ={}))


def test_the_name_of_the_machine_has_no_address(machine, monkeypatch):
    jars = machine("17.0.15")
    monkeypatch.setattr(socket, "gethostname", lambda: "nowhere.invalid")
    with pytest.raises(ConfigError, match=r"add the line 127.0.0.1 nowhere"):
        check_local(load(jars))


def test_java_is_missing(machine):
    with pytest.raises(ConfigError, match="no java in PATH; install one"):
        check_local(load(machine(None)))


@pytest.mark.parametrize("version", ["1.8.0_402", "25.0.1"])
def test_java_of_another_version(machine, version):
    with pytest.raises(ConfigError, match=f"requires Java 11, 17 or 21, .*{version}"):
        check_local(load(machine(version)))


def test_the_jars_are_missing(tmp_path):
    line = f"^beam.flink.jars: {tmp_path} contains no Flink runner of Beam; run make flink$"
    with pytest.raises(ConfigError, match=line):
        check_local(load(tmp_path))


@contextmanager
def flink(version, slots=4):
    """Run a server that answers as Flink's REST API of a version."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"flink-version": version, "slots-total": slots}).encode())

        def log_message(self, *_):
            pass

    with HTTPServer(("localhost", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"localhost:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_cluster_of_the_same_version(machine):
    with flink("1.19.3") as address:
        check_local(
            load(machine("17"), f"beam.flink.master={address}", f"beam.flink.worker_pool={address}")
        )


def test_a_cluster_of_another_version(machine):
    line = r"^beam.flink.master: \S+ runs Flink 2.0, and the jars are of Flink 1.19; start a"
    with flink("2.0.0") as address, pytest.raises(ConfigError, match=line):
        check_local(
            load(machine("17"), f"beam.flink.master={address}", f"beam.flink.worker_pool={address}")
        )


def test_a_cluster_with_too_few_slots(machine):
    line = r"^beam.flink.parallelism: 2 is more than the 1 slots of localhost"
    with flink("1.19.0", slots=1) as address, pytest.raises(ConfigError, match=line):
        check_local(
            load(machine("17"), f"beam.flink.master={address}", f"beam.flink.worker_pool={address}")
        )


def test_a_cluster_that_is_not_reachable(machine):
    with flink("1.19.0") as address:
        pass
    line = f"^beam.flink.master: {address} does not answer as Flink's REST API: .*; start the"
    with pytest.raises(ConfigError, match=line):
        check_local(
            load(machine("17"), f"beam.flink.master={address}", f"beam.flink.worker_pool={address}")
        )


@pytest.mark.parametrize(
    ("key", "more"),
    [
        ("job_endpoint", ("beam.flink.master=localhost:1",)),
    ],
)
def test_a_server_that_is_not_reachable(machine, key, more):
    with flink("1.19.0") as address:
        pass
    with pytest.raises(ConfigError, match=f"^beam.flink.{key}: {address} is not reachable"):
        check_local(load(machine("17"), f"beam.flink.{key}={address}", *more))


def test_the_worker_pool_of_a_cluster_on_this_machine_is_reachable(machine):
    jars = machine("17")
    with flink("1.19.0") as address:
        for pool in ("localhost:1", "a..b:50000"):
            more = (f"beam.flink.master={address}", f"beam.flink.worker_pool={pool}")
            with pytest.raises(ConfigError, match=f"^beam.flink.worker_pool: {pool} is not reach"):
                check_local(load(jars, *more))


def test_a_job_server_needs_the_address_of_its_cluster():
    more = "beam.flink.job_endpoint=jobs.example:8099"
    with pytest.raises(ConfigError, match=r"beam.flink: job_endpoint requires the REST address"):
        load_config("sample", environ={"PIPELINE_SET": more})


REMOTE = ("beam.flink.master=flink.example:8081",)


@pytest.mark.parametrize(
    ("paths", "line"),
    [
        (("data.input_base=gs://bucket/raw",), "paths.root: /.*"),
        (("paths.root=gs://bucket/runs", "data.input_base=/mnt/raw"), "data.input_base: /mnt/raw"),
        # The sample is in this installation.
        (("paths.root=gs://bucket/runs",), "data.input_base: /.*/sample_data"),
    ],
)
def test_a_remote_cluster_cannot_read_the_folders_of_this_machine(tmp_path, paths, line):
    remote = load(tmp_path, *REMOTE, *paths)
    remedy = "is not accessible from the TaskManagers of flink.example:8081; set gs://BUCKET"
    with pytest.raises(ConfigError, match=f"^{line} {remedy}"):
        check_target(remote, "local")


def test_a_remote_cluster_reads_shared_folders_and_buckets(machine, monkeypatch):
    jars = machine("17")
    monkeypatch.setattr("platforms.flink.checks._check_cluster", lambda flink: None)
    check_target(load(jars, *REMOTE, "beam.flink.shared_paths=true"), "local")
    check_target(
        load(jars, *REMOTE, "paths.root=gs://bucket/runs", "data.input_base=gs://bucket/raw"),
        "local",
    )


COMPILED = ("beam.runner=flink", *REMOTE)
ENDPOINT = "beam.flink.job_endpoint=jobs.example:8099"


def test_a_compiled_pipeline_needs_a_job_server():
    with pytest.raises(ConfigError, match=r"^beam.flink.job_endpoint: not set, and a compiled"):
        check_target(settings("kubeflow", more=",".join(COMPILED)), "kubeflow")


def test_a_compiled_pipeline_does_not_run_on_this_machine():
    here = f"beam.runner=flink,beam.flink.master=localhost:8081,{ENDPOINT}"
    with pytest.raises(ConfigError, match=r"^beam.flink.master: localhost:8081 is not reachable"):
        check_target(settings("kubeflow", more=here), "kubeflow")


@pytest.mark.parametrize("option", ["--input", "--output"])
def test_files_to_score_must_be_where_the_workers_are(tmp_path, option):
    line = f"^{option}: scores.csv is not accessible from the TaskManagers"
    with pytest.raises(ConfigError, match=line):
        check_paths(load(tmp_path, *REMOTE), [(option, "scores.csv")])
    check_paths(load(tmp_path, *REMOTE, "beam.flink.shared_paths=true"), [(option, "scores.csv")])


def test_a_compiled_pipeline_on_flink():
    check_target(settings("kubeflow", more=",".join([*COMPILED, ENDPOINT])), "kubeflow")
