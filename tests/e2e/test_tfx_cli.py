"""The `tfx` command on the local engine, as the README shows it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.conftest import SETTINGS, compiled_settings
from tests.e2e.harness import Workspace

ROOT = Path(__file__).parents[2]
TFX = str(Path(sys.executable).with_name("tfx"))


def tfx(workspace, *words, engine="local", overrides="", cwd=ROOT):
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
def test_wrong_settings_end_it_with_one_line(tmp_path):
    workspace = Workspace(tmp_path, SETTINGS)
    done = tfx(workspace, *CREATE, overrides="training.epoch=3")
    assert done.returncode != 0
    assert "training.epoch: unknown key, did you mean epochs?" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("runner", ["pipeline/local_runner.py", "kubeflow/runner.py"])
def test_the_old_paths_of_the_runners_work(tmp_path, runner):
    environ = Workspace(tmp_path, SETTINGS).env("training.epoch=3")
    words = [sys.executable, str(ROOT / runner)]
    done = subprocess.run(words, env=environ, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2
    assert "training.epoch: unknown key, did you mean epochs?" in done.stderr.splitlines()[-1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("verb", "engine", "runner", "line"),
    [
        ("compile", "vertex", LOCAL, f"is for --engine local; set --pipeline_path {VERTEX}"),
        ("create", "beam", LOCAL, "is for --engine local; set --engine local"),
        ("create", "local", VERTEX, f"is for --engine vertex; set --pipeline_path {LOCAL}"),
    ],
)
def test_the_runner_of_another_engine_is_one_line_and_runs_nothing(
    tmp_path, verb, engine, runner, line
):
    workspace = Workspace(tmp_path, compiled_settings(tmp_path) if runner == VERTEX else SETTINGS)
    words = ("pipeline", verb, "--pipeline_path", str(ROOT / runner))
    done = tfx(workspace, *words, engine=engine, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == f"--engine {engine}: {runner} {line}"
    assert {file.name for file in tmp_path.iterdir()} == {"config.yaml"}


@pytest.mark.slow
@pytest.mark.real_data
def test_real_reviews_reach_the_promised_accuracy(tmp_path, real_data):
    lara = real_data / "lara"
    data = {
        "input_base": str(lara),
        "splits": {"train": "train.ft.txt.bz2", "test": "test.ft.txt.bz2"},
    }
    workspace = Workspace(tmp_path, {"data": data, "evaluation": {"min_accuracy": 0.945}})
    assert tfx(workspace, *CREATE).returncode == 0
    done = tfx(workspace, *RUN)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert len(workspace.pushed()) == 1, "accuracy is below 0.945"
