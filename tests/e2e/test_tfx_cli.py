"""The `tfx` command on the local engine, as the README shows it, and a strategy through it."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.checkout import CHECKOUT
from tests.e2e.conftest import LITTLE, SETTINGS, compiled_settings
from tests.e2e.harness import Workspace

TFX = str(Path(sys.executable).with_name("tfx"))


def tfx(workspace, *words, engine="local", overrides="", cwd=CHECKOUT):
    environ = workspace.env(overrides)
    # The TFX CLI starts `python` from PATH.
    environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environ['PATH']}"
    return subprocess.run(
        [TFX, *words, "--engine", engine],
        env=environ,
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=900,
    )


LOCAL, VERTEX = "local_runner.py", "kubeflow_v2_runner.py"
CREATE = ("pipeline", "create", "--pipeline_path", LOCAL)
RUN = ("run", "create", "--pipeline_name", "amazon_reviews")


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("verb", "engine", "runner", "own"),
    [
        ("compile", "vertex", LOCAL, "local"),
        ("create", "beam", LOCAL, "local"),
        ("create", "local", VERTEX, "vertex"),
    ],
)
def test_the_runner_of_another_engine_is_one_line_and_runs_nothing(
    tmp_path, verb, engine, runner, own
):
    workspace = Workspace(tmp_path, compiled_settings(tmp_path) if runner == VERTEX else SETTINGS)
    words = ("pipeline", verb, "--pipeline_path", str(CHECKOUT / runner))
    done = tfx(workspace, *words, engine=engine, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == f"--engine {engine}: this file is for --engine {own}"
    assert {file.name for file in tmp_path.iterdir()} == {"config.yaml"}


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_strategy_trains_and_pushes(tmp_path):
    # The cluster of a strategy must not become a part of the cluster of another job.
    cluster = {"cluster": {"worker": ["a:2222", "b:2222"]}, "task": {"type": "worker", "index": 1}}
    workspace = Workspace(tmp_path, LITTLE, {"TF_CONFIG": json.dumps(cluster)})
    created = tfx(workspace, *CREATE)
    assert created.returncode == 0, created.stdout + created.stderr
    assert 'Pipeline "amazon_reviews" created successfully' in created.stdout
    assert not workspace.pushed()
    values = {"strategy": "mirrored", "epochs": 1, "batch_size_per_replica": 64, "devices": 2}
    overrides = ",".join(f"training.{key}={value}" for key, value in values.items())
    done = tfx(workspace, *RUN, overrides=overrides)
    log = done.stdout + done.stderr
    assert done.returncode == 0, log[-5000:]
    assert "Strategy mirrored (as set): " in log
    assert "ignored environment variables of other jobs: TF_CONFIG" in log
    assert len(workspace.pushed()) == 1, log[-5000:]
    run = workspace.artifact_uri("ModelRun") / "training.json"
    steps = json.loads(run.read_text())["steps"]
    checkpoints = workspace.root / "checkpoints"
    saved = re.findall(rf"Checkpoint after step (\d+): {checkpoints}/[0-9a-f-]+/ckpt-", log)
    assert saved == [str(steps)], log[-5000:]
    assert not list(checkpoints.glob("*")), "a checkpoint was left"
    shown = tfx(workspace, "pipeline", "schema", *RUN[2:], cwd=tmp_path)
    assert shown.returncode == 0, shown.stdout + shown.stderr
    assert 'name: "label"' in (tmp_path / "schema.pbtxt").read_text()
