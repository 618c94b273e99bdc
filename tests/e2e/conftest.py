"""One finished run of the sample pipeline, shared by the tests of the group `finished`.

Each of them finds the workspace as that run left it, in whatever order they are run.
"""

import shutil

import pytest
import yaml

from pipeline.settings_file import PRESETS
from tests.e2e.connections import Connections
from tests.e2e.harness import Workspace

SETTINGS = yaml.safe_load((PRESETS / "sample.yaml").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def connections(tmp_path_factory):
    """What the processes of the run of `finished` connect to and execute."""
    return Connections(tmp_path_factory.mktemp("connections"))


@pytest.fixture(scope="session")
def first_run(tmp_path_factory, connections):
    """(workspace, what `amazon-reviews run` printed, copy of the workspace's folder) after one run
    that pushed a model."""
    folder = tmp_path_factory.mktemp("finished")
    workspace = Workspace(folder / "workspace", SETTINGS, connections.environ)
    done = workspace.run()
    workspace.environ = {}
    assert done.returncode == 0, done.stdout + done.stderr
    shutil.copytree(workspace.folder, folder / "copy")
    return workspace, done.stdout, folder / "copy"


@pytest.fixture
def finished(first_run):
    """(workspace, what `amazon-reviews run` printed) of `first_run`; what a test changes in the
    workspace is undone after it."""
    workspace, output, copy = first_run
    yield workspace, output
    if _files(workspace.folder) != _files(copy):
        shutil.rmtree(workspace.folder)
        shutil.copytree(copy, workspace.folder)


def _files(folder):
    """Path of each file -> its size and the time of its last change."""
    files = {path.relative_to(folder): path.stat() for path in folder.rglob("*") if path.is_file()}
    return {path: (stat.st_size, stat.st_mtime_ns) for path, stat in files.items()}
