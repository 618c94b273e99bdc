"""Strategies through `tfx run create --engine local`, one after the other."""

import json
import re

import pytest

from tests.e2e.conftest import SETTINGS
from tests.e2e.harness import Workspace
from tests.e2e.test_tfx_cli import CREATE, RUN, tfx
from tests.exhaustive import exhaustive

# One epoch on little data: the models are not good, and are pushed nevertheless.
LITTLE = {
    "data": {"max_examples": {"train": 4000, "eval": 500, "test": 500}},
    "evaluation": {"min_accuracy": 0.0, "max_accuracy_drop": 1.0},
    "serving_check": {"min_golden": 0.0},
}
SHAPES = {
    "one_device": {},
    "mirrored": {"devices": 2},
    "central_storage": {"devices": 2},
    "multi_worker_mirrored": {"workers": 2},
    "parameter_server": {"workers": 1, "parameter_servers": 2},
}


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    "strategies",
    [
        ["multi_worker_mirrored", "parameter_server"],
        exhaustive(["one_device", "mirrored", "central_storage"]),
    ],
    ids="-".join,
)
def test_strategies_train_and_push(tmp_path, strategies):
    # The components before the Trainer are the same for all strategies, and are cache hits.
    workspace = Workspace(tmp_path, {**SETTINGS, **LITTLE})
    created = tfx(workspace, *CREATE)
    assert created.returncode == 0, created.stdout + created.stderr
    assert 'Pipeline "amazon_reviews" created successfully' in created.stdout
    assert not workspace.pushed()
    for number, strategy in enumerate(strategies, start=1):
        shape = SHAPES[strategy]
        values = {"strategy": strategy, "epochs": 1, "batch_size_per_replica": 64, **shape}
        overrides = ",".join(f"training.{key}={value}" for key, value in values.items())
        done = tfx(workspace, *RUN, overrides=overrides)
        log = done.stdout + done.stderr
        assert done.returncode == 0, log[-5000:]
        assert f"Strategy {strategy} (as set): " in log
        assert len(workspace.pushed()) == number, log[-5000:]
        run = workspace.artifact_uri("ModelRun") / "training.json"
        steps = json.loads(run.read_text())["steps"]
        checkpoints = workspace.root / "checkpoints"
        saved = re.findall(rf"Checkpoint after step (\d+): {checkpoints}/[0-9a-f-]+/ckpt-", log)
        assert saved == [str(steps)], log[-5000:]
        assert not list(checkpoints.glob("*")), "a checkpoint was left"
        if strategy == "parameter_server":
            assert all(f"[{name}]" in log for name in ("worker 0", "ps 0", "ps 1", "chief"))
