"""One run at a time on a local root, and the release of the lock at every end."""

import errno
import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from platforms.local import locks
from tests.checkout import CHECKOUT
from tests.waiting import wait

COMMAND = str(Path(sys.executable).with_name("amazon-reviews"))
LOCAL_RUNNER = str(CHECKOUT / "local_runner.py")
HOLD = (
    "import sys, time; from platforms.local.locks import lock_root; "
    "lock_root(sys.argv[1]); time.sleep(600)"
)


def environ(root):
    return {**os.environ, "PIPELINE_CONFIG": "sample", "PIPELINE_SET": f"paths.root={root}"}


@pytest.fixture
def holder(tmp_path):
    """A process that holds the root `tmp_path`."""
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], cwd=Path.cwd())
    wait(lambda: is_locked(tmp_path))
    yield process
    process.kill()
    process.wait()


def is_locked(root):
    try:
        os.close(locks.lock_root(str(root)))
    except locks.ConfigError:
        return True
    return False


@pytest.mark.parametrize("command", [[COMMAND, "run"], [sys.executable, LOCAL_RUNNER]])
def test_a_second_run_on_a_root_is_2(tmp_path, holder, command):
    done = subprocess.run(
        command, env=environ(tmp_path), capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stdout == ""
    line = done.stderr.splitlines()[-1]
    assert line.startswith(f"paths.root: {tmp_path} is in use by another run")
    assert not (tmp_path / "logs").exists()


def test_a_killed_run_leaves_the_root_free(tmp_path, holder):
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert not is_locked(tmp_path)


def test_a_process_that_inherits_the_lock_keeps_it(tmp_path):
    lock = locks.lock_root(str(tmp_path))
    script = (
        "import sys; from platforms.local.locks import lock_root; "
        "print(lock_root(sys.argv[1])); input()"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)],
        env={**os.environ, locks.DESCRIPTOR_VARIABLE: str(lock)},
        pass_fds=[lock],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout.readline() == f"{lock}\n"
    os.close(lock)
    assert is_locked(tmp_path)
    child.communicate("\n")
    assert not is_locked(tmp_path)


def test_a_file_system_without_locks_is_a_warning(tmp_path, monkeypatch, capsys):
    def refuse(file, operation):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    assert locks.lock_root(str(tmp_path)) is None
    [line] = capsys.readouterr().err.splitlines()
    assert f"{tmp_path} cannot be locked (No locks available); do not start a" in line


def test_a_bucket_is_not_locked():
    assert locks.lock_root("gs://bucket/runs") is None
