"""A model that is blessed, but made slow on purpose, is not pushed."""

import json
import os

import pytest

from tests.checkout import SLOW_SECONDS, checkout_with_a_slow_model
from tests.e2e.conftest import SETTINGS
from tests.e2e.harness import Workspace

pytestmark = pytest.mark.slow


def test_a_slow_model_is_refused_with_exit_code_3(tmp_path):
    checkout = checkout_with_a_slow_model(tmp_path / "checkout")
    settings = {
        **SETTINGS,
        "training": {**SETTINGS["training"], "model": "slow"},
        "data": {"max_examples": {"train": 8000, "eval": 500, "test": 500}},
        "serving": {"max_p99_ms": SLOW_SECONDS * 1000 - 10},
    }
    path = os.pathsep.join(filter(None, [str(checkout), os.environ.get("PYTHONPATH")]))
    workspace = Workspace(tmp_path / "workspace", settings, {"PYTHONPATH": path})
    done = workspace.run()
    assert done.returncode == 3, done.stdout + done.stderr
    assert "\nblessed (" in done.stdout
    last = done.stdout.splitlines()[-1]
    assert last.startswith("not pushed: serving check: the p99 latency of single requests is ")
    assert last.endswith(f" ms, serving.max_p99_ms allows {SLOW_SECONDS * 1000 - 10:g}")
    assert workspace.pushed() == []
    file = workspace.artifact_uri("InfraBlessing") / "check.json"
    found = json.loads(file.read_text())
    assert [result["name"] for result in found["results"] if not result["passed"]] == ["p99_ms"]
    # A threshold is a part of the cache key, and the check of a changed one passes.
    done = workspace.run("serving.max_p99_ms=100000.0")
    assert done.returncode == 0, done.stdout + done.stderr
    states = workspace.states(done.stdout)
    assert states["Trainer"] == states["Evaluator"] == "cached"
    assert states["ServingCheck"] == states["Pusher"] == "done"
    assert len(workspace.pushed()) == 1
    done = workspace.run("serving.max_p99_ms=100000.0")
    assert workspace.states(done.stdout)["ServingCheck"] == "cached"
