"""One finished run of the sample pipeline, shared by the tests of the group `finished`.

Each test starts with the workspace in the state after that run, whatever the order of the tests.
"""

import shutil
import subprocess

import pytest
import yaml

from pipeline.config import PRESETS
from tests.checkout import CHECKOUT
from tests.e2e.connections import Connections
from tests.e2e.harness import Workspace
from tests.e2e.mlflow_server import Server

SETTINGS = yaml.safe_load((PRESETS / "sample.yaml").read_text(encoding="utf-8"))
LITTLE = {
    **SETTINGS,
    "data": {"max_examples": {"train": 4000, "eval": 500, "test": 500}},
    # The models are not good, and are pushed nevertheless.
    "evaluation": {"min_accuracy": 0.0, "min_class_recall": 0.0, "max_accuracy_drop": 1.0},
    "serving_check": {"min_golden": 0.0},
}
"""Settings of a run on few reviews, which takes half the time."""


def compiled_settings(folder):
    """The settings of a pipeline for Kubeflow, whose volume is a folder of this machine."""
    return {
        **SETTINGS,
        "paths": {
            # The launchers of the tests have another root.
            "root": "gs://bucket/root",
            "checkpoints": str(folder / "checkpoints"),
            "serving": str(folder / "serving"),
        },
        "cluster": {"image": "example/amazon-reviews:1"},
        "kubeflow": {"volume": {"claim": "reviews", "mount": str(folder)}},
    }


@pytest.fixture(scope="session")
def mlflow_server(tmp_path_factory):
    """Return MLflow's server for the tests of this process."""
    subprocess.run(["make", "-s", "-C", str(CHECKOUT), "mlflow-server"], check=True)
    server = Server(tmp_path_factory.mktemp("mlflow"))
    yield server
    server.process.terminate()
    server.process.wait(60)


@pytest.fixture(scope="session")
def connections(tmp_path_factory):
    """Return the record of what the processes of the run of `finished` connect to and execute."""
    return Connections(tmp_path_factory.mktemp("connections"))


@pytest.fixture(scope="session")
def first_run(tmp_path_factory, connections):
    """Return (workspace, output of `amazon-reviews run`, copy of the workspace's folder) after one
    run that pushed a model."""
    folder = tmp_path_factory.mktemp("finished")
    workspace = Workspace(folder / "workspace", SETTINGS, connections.environ)
    done = workspace.run()
    workspace.environ = {}
    assert done.returncode == 0, done.stdout + done.stderr
    shutil.copytree(workspace.folder, folder / "copy")
    return workspace, done.stdout, folder / "copy"


@pytest.fixture
def finished(first_run):
    """Return (workspace, output of `amazon-reviews run`) of `first_run`; the changes of a test to
    the workspace are undone after the test."""
    workspace, output, copy = first_run
    yield workspace, output
    if _files(workspace.folder) != _files(copy):
        shutil.rmtree(workspace.folder)
        shutil.copytree(copy, workspace.folder)


def _files(folder):
    """Return path of each file -> its size and the time of its last change."""
    files = {path.relative_to(folder): path.stat() for path in folder.rglob("*") if path.is_file()}
    return {path: (stat.st_size, stat.st_mtime_ns) for path, stat in files.items()}
