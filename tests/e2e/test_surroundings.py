"""A run depends on its settings and its data alone."""

import json

import pytest

from tests.core.test_processes import PACKAGES
from tests.e2e.conftest import SETTINGS
from tests.e2e.harness import Workspace

pytestmark = pytest.mark.slow


def test_a_run_takes_nothing_from_other_projects_and_jobs(tmp_path):
    """The training is a local cluster, which must not become a part of the cluster of TF_CONFIG."""
    cluster = {"worker": ["a:2222", "b:2222"]}
    environ = {
        "TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": "worker", "index": 1}}),
        "KERAS_BACKEND": "jax",
        "PYTHONPATH": str(tmp_path),
    }
    workspace = Workspace(tmp_path, SETTINGS, environ)
    for name in PACKAGES:
        (tmp_path / f"{name}.py").write_text("raise SystemExit(f'{__file__} of the user')\n")
    done = workspace.run("training.strategy=multi_worker_mirrored,training.workers=2")
    assert done.returncode == 0, done.stdout + done.stderr
    line = "ignored environment variables of other jobs: TF_CONFIG, KERAS_BACKEND"
    assert done.stderr.splitlines() == [line]
    assert len(workspace.pushed()) == 1
