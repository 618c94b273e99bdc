"""One finished run of the sample pipeline, shared by the tests of the group `finished`.

They run in the order of their files: those that run the pipeline again come last.
"""

import pytest
import yaml

from pipeline.settings_file import PRESETS
from tests.e2e.connections import Connections
from tests.e2e.harness import Workspace

SETTINGS = yaml.safe_load((PRESETS / "sample.yaml").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def connections(tmp_path_factory):
    """What the processes of the first run of `finished` connect to and execute."""
    return Connections(tmp_path_factory.mktemp("connections"))


@pytest.fixture(scope="session")
def finished(tmp_path_factory, connections):
    """(workspace, what `amazon-reviews run` printed) after one run that pushed a model."""
    workspace = Workspace(tmp_path_factory.mktemp("finished"), SETTINGS, connections.environ)
    done = workspace.run()
    workspace.environ = {}
    assert done.returncode == 0, done.stdout + done.stderr
    return workspace, done.stdout
