"""Places that cannot be written are named before anything is created; one run at a time."""

import errno
import fcntl
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from rich.console import Console

from cli.monitor import run_watched
from core.errors import ConfigError
from pipeline.config import PipelineConfig, load_config
from platforms.checks import check_target
from platforms.local.places import check_places, lock_root
from tests.checkout import CHECKOUT

NOBODY = 65534
COMMAND = [str(Path(sys.executable).with_name("amazon-reviews")), "run"]
LOCAL_RUNNER = [sys.executable, str(CHECKOUT / "local_runner.py")]


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        ({"root": "file/runs"}, "paths.root: {0}/file/runs cannot be created, because {0}/f"),
        ({"root": "taken"}, "paths.root: {0}/taken/logs cannot be created, because {0}/taken"),
        ({"root": "link"}, "paths.root: {0}/link cannot be created, because {0}/link is no folder"),
        ({"metadata": "file/m.sqlite"}, "paths.metadata: {0}/file cannot be created"),
        ({"metadata": "taken"}, "paths.metadata: {0}/taken is a folder"),
        (
            {"metadata": "postgres://me:secret@db/x"},
            "paths.metadata: postgres://… is not supported",
        ),
    ],
)
def test_a_place_that_cannot_be_is_named_and_nothing_is_created(
    tmp_path, monkeypatch, paths, expected
):
    (tmp_path / "file").write_text("a regular file")
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "logs").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "nothing")
    before = sorted(tmp_path.rglob("*"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError) as raised:
        check_places(load_config("sample", [f"paths.{k}='{v}'" for k, v in paths.items()], {}))
    line = str(raised.value)
    assert line.startswith(expected.format(tmp_path)) and "\n" not in line
    assert "secret" not in line
    assert sorted(tmp_path.rglob("*")) == before


def check_as_nobody(paths):
    """Return the line that a user without rights gets; root may write everywhere."""
    config = PipelineConfig.model_validate({"paths": paths})
    is_root = os.getuid() == 0
    if is_root:
        os.setresuid(NOBODY, NOBODY, 0)
    try:
        check_places(config)
    except ConfigError as error:
        return str(error)
    finally:
        if is_root:
            os.setresuid(0, 0, 0)
    return ""


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


@pytest.mark.parametrize("key", ["root", "metadata", "serving", "checkpoints"])
def test_a_folder_or_database_without_permission_is_named(key):
    # Not pytest's folder, which only its owner may enter.
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        free, locked, database = folder / "free", folder / "locked", folder / "m.sqlite"
        free.mkdir()
        free.chmod(0o777)
        locked.mkdir(mode=0o555)
        place = locked / ("m.sqlite" if key == "metadata" else "below")
        expected = check_as_nobody({"root": str(free), key: str(place)})
        assert expected.startswith(f"paths.{key}: {locked}")
        assert f"cannot be written: no permission for {locked}" in expected
        assert check_as_nobody({"root": str(free)}) == ""
        database.touch(mode=0o444)
        folder.chmod(0o777)
        expected = check_as_nobody({"root": str(free), "metadata": str(database)})
        assert expected == f"paths.metadata: {database} cannot be written: no permission"


@pytest.mark.parametrize("command", [COMMAND, LOCAL_RUNNER], ids=["amazon-reviews", "tfx"])
def test_a_second_run_on_a_root_is_2(tmp_path, command):
    lock = lock_root(str(tmp_path))
    environ = {"PIPELINE_CONFIG": "sample", "PIPELINE_SET": f"paths.root={tmp_path}"}
    done = subprocess.run(command, env=os.environ | environ, capture_output=True, text=True)
    os.close(lock)
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stdout == ""
    line = done.stderr.splitlines()[-1]
    assert line.startswith(f"paths.root: {tmp_path} is in use by another run")
    assert not (tmp_path / "logs").exists()
    os.close(lock_root(str(tmp_path)))


def test_the_process_of_the_pipeline_inherits_the_lock(tmp_path, monkeypatch):
    # The handler of SIGTERM would outlive the test.
    monkeypatch.setattr("signal.signal", lambda number, handler: None)
    lock = lock_root(str(tmp_path))
    command = [sys.executable, "-c", "import os, sys; os.fstat(int(sys.argv[1]))", str(lock)]
    console = Console(file=(tmp_path / "printed").open("w"))
    watched = run_watched(console, tmp_path / "log", command, lock=lock)
    assert watched.failure["error"] == "the pipeline's process ended with exit code 0"
    os.close(lock)


def test_a_file_system_without_locks_is_a_warning(tmp_path, monkeypatch, capsys):
    def refuse(file, operation):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    assert lock_root(str(tmp_path)) is None
    [line] = capsys.readouterr().err.splitlines()
    assert f"{tmp_path} cannot be locked (No locks available); do not start a" in line
