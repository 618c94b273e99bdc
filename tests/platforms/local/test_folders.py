"""Places that cannot be written are named before anything is created; one run at a time."""

import errno
import fcntl
import os
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest
from rich.console import Console

from cli.monitor import run_monitored
from core.errors import ConfigError
from pipeline.config import PipelineConfig, load_config
from platforms.checks import check_target
from platforms.local.folders import lock_root, make_folders
from tests.checkout import CHECKOUT
from tests.exhaustive import exhaustive

COMMAND = [str(Path(sys.executable).with_name("amazon-reviews")), "run"]
LOCAL_RUNNER = [sys.executable, str(CHECKOUT / "local_runner.py")]


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        ({"root": "file/runs"}, "paths.root: {0}/file/runs/logs cannot be created: Not a dir"),
        ({"root": "taken"}, "paths.root: {0}/taken/logs cannot be created: File exists"),
        ({"metadata": "file/m.sqlite"}, "paths.metadata: {0}/file cannot be created"),
        (
            {"metadata": "postgres://me:secret@db/x"},
            "paths.metadata: postgres://… is not supported",
        ),
    ],
)
def test_a_place_that_cannot_be_is_named(tmp_path, monkeypatch, paths, expected):
    (tmp_path / "file").write_text("a regular file")
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "logs").write_text("")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError) as raised:
        make_folders(load_config("sample", [f"paths.{k}='{v}'" for k, v in paths.items()], {}))
    line = str(raised.value)
    assert line.startswith(expected.format(tmp_path)) and "\n" not in line
    assert "secret" not in line


@pytest.mark.parametrize("key", ["root", "serving"])
def test_outputs_below_the_input_are_refused_because_they_would_be_read(tmp_path, key):
    def check(place, **data):
        paths = {"root": str(tmp_path / "elsewhere"), key: str(tmp_path / place)}
        data = {"input_base": str(tmp_path / "in"), **data}
        check_target(PipelineConfig.model_validate({"paths": paths, "data": data}), "local")

    with pytest.raises(ConfigError, match=rf"paths\.{key}: .*/in/runs is inside data\.input_base"):
        check("in/runs")
    for place in ("in/.runs", "input", "runs"):
        check(place)
    check("in/runs", splits={"train": "*.csv"})
    spans = str(tmp_path / "in" / "day-{SPAN}")
    check("in/runs", input_base=spans)
    with pytest.raises(ConfigError, match=rf"paths\.{key}: .*/in/day-3/runs is inside data\."):
        check("in/day-3/runs", input_base=spans)


@pytest.mark.parametrize("key", ["root", "metadata", "serving", "checkpoints"])
def test_a_place_without_permission_is_named(tmp_path, monkeypatch, key):
    locked = str(tmp_path / "locked")
    # Root may write everywhere.
    monkeypatch.setattr(os, "access", lambda path, mode: not path.startswith(locked))
    place = f"{locked}/m.sqlite" if key == "metadata" else locked
    paths = {"root": str(tmp_path / "free"), key: place}
    with pytest.raises(ConfigError, match=rf"^paths.{key}: {locked}.* cannot be written: no perm"):
        make_folders(PipelineConfig.model_validate({"paths": paths}))


@pytest.mark.parametrize("command", [COMMAND, exhaustive(LOCAL_RUNNER)])
def test_a_second_run_on_a_root_is_2(tmp_path, command):
    lock = lock_root(str(tmp_path))
    environ = {"PIPELINE_CONFIG": "sample", "PIPELINE_SET": f"paths.root={tmp_path}"}
    done = subprocess.run(command, env=os.environ | environ, capture_output=True, text=True)
    os.close(lock)
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stdout == ""
    line = done.stderr.splitlines()[-1]
    assert line.startswith(f"paths.root: {tmp_path} is in use by another run")
    os.close(lock_root(str(tmp_path)))


def test_the_process_of_the_pipeline_inherits_the_lock(tmp_path, monkeypatch):
    # The handler of SIGTERM would outlive the test.
    monkeypatch.setattr("signal.signal", lambda number, handler: None)
    lock = lock_root(str(tmp_path))
    command = [sys.executable, "-c", "import os, sys; os.fstat(int(sys.argv[1]))", str(lock)]
    console = Console(file=(tmp_path / "printed").open("w"))
    watched = run_monitored(console, tmp_path / "log", command, lock=lock)
    assert watched.failure.error == "the pipeline's process ended with exit code 0"
    os.close(lock)


def test_a_file_system_without_locks_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(fcntl, "flock", Mock(side_effect=OSError(errno.ENOLCK, "No locks avail")))
    with pytest.raises(ConfigError, match="lock cannot be locked: No locks avail"):
        lock_root(str(tmp_path))
