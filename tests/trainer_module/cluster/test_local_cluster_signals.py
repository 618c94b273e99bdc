"""Local clusters whose parent receives a signal."""

import signal
import subprocess
import sys
import threading

import pytest

from tests.trainer_module.scripted_cluster import FOREVER, REPOSITORY, SERVE, failure

PARENT = """
import json, sys
from pathlib import Path
from trainer_module.cluster import local
from trainer_module.settings import TrainingJob
job = TrainingJob.model_validate_json(sys.argv[1])
local.run(job, sys.argv[2:])
"""


@pytest.fixture
def parent(scripted):
    """Starts a process that runs a local cluster; it is ended with the test."""
    started = []

    def start(script, **training):
        job = scripted.job(**{"strategy": "multi_worker_mirrored", "workers": 2, **training})
        command = [sys.executable, "-c", PARENT, job.model_dump_json(), *scripted.command(script)]
        started.append(
            subprocess.Popen(
                command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
        )
        return started[0]

    yield start
    for process in started:
        process.kill()
        process.communicate()


SAVE = """
def save(number, frame):
    note("saved")
    sys.exit(143)
signal.signal(signal.SIGTERM, save)
note("ready")
time.sleep(600)
"""


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, -signal.SIGINT)]
)
def test_a_signal_lets_the_training_save(scripted, parent, number, code):
    process = parent(SAVE)
    scripted.wait(lambda: len(scripted.notes("ready")) == 2)
    process.send_signal(number)
    assert process.wait(120) == code
    assert set(scripted.texts("saved")) == {"worker 0", "worker 1"}
    assert scripted.alive() == []


def test_a_second_signal_ends_the_training_at_once(scripted, parent):
    process = parent(
        'signal.signal(signal.SIGTERM, lambda *_: note("sigterm"))\nnote("ready")\n'
        "while True: time.sleep(1)"
    )
    scripted.wait(lambda: len(scripted.notes("ready")) == 2)
    process.send_signal(signal.SIGTERM)
    scripted.wait(lambda: len(scripted.notes("sigterm")) == 2)
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 143
    assert scripted.alive() == []


def test_servers_run_until_the_chief_has_saved(scripted, parent):
    process = parent(
        f"{SERVE}"
        "def save(number, frame):\n"
        "    time.sleep(0.5)\n"
        "    servers = [f for f in folder.glob('started *') if 'chief' not in f.name]\n"
        "    alive = [f for f in servers if Path('/proc', f.name.split()[-1], 'exe').exists()]\n"
        "    note('saved', len(alive))\n"
        "    sys.exit(143)\n"
        "signal.signal(signal.SIGTERM, save)\n"
        "for other in ('worker 0', 'worker 1', 'ps 0'): wait_for('started', other)\n"
        f"note('ready')\n{FOREVER}",
        strategy="parameter_server",
    )
    scripted.wait(lambda: scripted.notes("ready"))
    process.send_signal(signal.SIGTERM)
    assert process.wait(120) == 143
    assert scripted.texts("saved") == {"chief 0": "3"}


def test_it_runs_in_a_thread_too_and_leaves_the_signals_alone(scripted):
    before = signal.getsignal(signal.SIGTERM)
    seen = []
    during = 'wait_for("seen", "test")'
    thread = threading.Thread(target=scripted.run, args=[during])
    thread.start()
    scripted.wait(lambda: len(scripted.notes("started")) == 2)
    seen.append(signal.getsignal(signal.SIGTERM))
    (scripted.folder / "seen test 0").touch()
    thread.join(120)
    assert not thread.is_alive()
    assert seen == [before]


def test_signal_handlers_are_put_back(scripted):
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    failure(scripted, "sys.exit(1)")
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before
