"""The fork server: what its workers share with a process of their own, and what ends with what."""

import contextlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
import pytest

from core.flink import fork_server
from tests.core.fork_client import NO_SERVER
from tests.waiting import wait

CLIENT = [sys.executable, str(Path(__file__).with_name("fork_client.py"))]


@pytest.fixture
def environ():
    """Return the environment of clients, whose servers end when the test ends."""
    # The address of a socket has at most 107 characters.
    with tempfile.TemporaryDirectory() as folder:
        yield {**os.environ, "TMPDIR": folder, "SECONDS": "600"}
        for each in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if each.environ().get("TMPDIR") == folder:
                    each.kill()


def start(environ, *words):
    return subprocess.Popen(
        [*CLIENT, *words], env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def ran(environ, *words):
    """Return the exit code, the lines of standard error, and the process of the server."""
    client = start(environ, *words)
    output, errors = client.communicate(timeout=60)
    return client.returncode, errors.splitlines(), psutil.Process(int(output.split()[1]))


def working(environ):
    """Return an endless client, the process of its worker, and that of the server."""
    client = start(environ, "endless")
    worker, server = (psutil.Process(int(pid)) for pid in client.stdout.readline().split())
    return client, worker, server


def ended(process):
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


@pytest.mark.parametrize(
    ("kind", "code", "last_line"),
    [
        ("done", 0, []),
        ("exit", 7, []),
        ("fault", 1, ["ZeroDivisionError: division by zero"]),
        ("killed", 137, []),
    ],
)
def test_the_exit_code_and_the_error_of_a_worker_are_those_of_its_client(
    environ, kind, code, last_line
):
    found, errors, _ = ran(environ, kind)
    assert (found, errors[-1:]) == (code, last_line)


def test_workers_share_a_server_only_in_the_same_environment(environ):
    _, _, first = ran(environ, "done")
    # The log of a run is no difference, because the client opens it.
    _, _, second = ran({**environ, "BEAM_WORKER_LOG": "other"}, "done")
    _, _, other = ran({**environ, "PYTHONPATH": environ.get("PYTHONPATH", "") + ":/other"}, "done")
    assert first == second != other


def test_a_worker_ends_with_its_client_and_the_server_remains(environ):
    client, worker, server = working(environ)
    client.kill()
    wait(lambda: ended(worker), 10)
    assert ran(environ, "done")[2] == server


def test_workers_end_with_a_killed_server_and_the_next_worker_has_a_new_one(environ):
    client, worker, server = working(environ)
    server.kill()
    _, errors = client.communicate(timeout=10)
    assert (client.returncode, errors) == (1, "the fork server ended, and its workers with it\n")
    wait(lambda: ended(worker), 10)
    code, errors, other = ran(environ, "done")
    assert (code, errors) == (0, [])
    assert other != server
    # The socket of the killed server is gone.
    [_] = Path(environ["TMPDIR"]).glob("beam-workers-*/*.socket")


def test_the_server_and_its_workers_end_with_a_killed_starter(environ):
    words = f"import subprocess; subprocess.run({[*CLIENT, 'endless']})"
    with subprocess.Popen(
        [sys.executable, "-c", words], env=environ, stdout=subprocess.PIPE, text=True
    ) as starter:
        processes = [psutil.Process(int(pid)) for pid in starter.stdout.readline().split()]
        starter.kill()
        wait(lambda: all(ended(process) for process in processes), 10)
    assert not list(Path(environ["TMPDIR"]).glob("beam-workers-*/*.socket"))


def test_a_server_without_workers_ends_after_a_time(environ):
    _, _, server = ran({**environ, "SECONDS": "1"}, "done")
    wait(lambda: ended(server), 10)


def test_a_folder_of_another_user_is_not_used(environ):
    folder = Path(environ["TMPDIR"], f"beam-workers-{os.getuid()}")
    folder.mkdir(0o700)
    foreign = [lambda: folder.chmod(0o755), lambda: folder.chmod(0o770)]
    if os.getuid() == 0:
        foreign.append(lambda: (folder.chmod(0o700), os.chown(folder, 12345, -1)))
    for change in foreign:
        change()
        client = start(environ, "done")
        output, errors = client.communicate(timeout=60)
        assert (client.returncode, output) == (NO_SERVER, "")
        assert errors == (
            f"no fork server ({folder} is not a private folder of this user): this worker imports "
            "its libraries\n"
        )


def test_a_server_that_cannot_import_its_libraries_is_no_server(environ):
    client = start(environ, "done", "no_such_library")
    output, errors = client.communicate(timeout=60)
    assert (client.returncode, output) == (NO_SERVER, "")
    assert "ModuleNotFoundError: No module named 'no_such_library'" in errors
    assert errors.splitlines()[-1].startswith("no fork server (")


@pytest.mark.slow
def test_the_import_of_the_libraries_starts_no_thread_of_python_grpc_or_tensorflow():
    script = (
        "import importlib, pathlib\n"
        f"for name in {fork_server.LIBRARIES}: importlib.import_module(name)\n"
        "print([file.read_text() for file in pathlib.Path('/proc/self/task').glob('*/comm')])"
    )
    # OpenBLAS ends its threads before a fork. Arrow's jemalloc starts its thread again after it.
    environ = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environ, capture_output=True, text=True, check=True
    )
    assert sorted(eval(done.stdout.splitlines()[-1])) == ["jemalloc_bg_thd\n", "python\n"]
