"""Local clusters: the environment, the logs, failures, signals, and the end of all processes."""

import contextlib
import json
import signal
import subprocess
import sys
import threading

import pytest

from core import progress
from tests.trainer_module.scripted_cluster import FOREVER, REPOSITORY, SERVE, failure
from trainer_module import task
from trainer_module.cluster import local
from trainer_module.cluster.tf_config import Cluster


def test_parameter_servers_get_a_coordinator(scripted):
    scripted.run(
        f'note("config", os.environ["TF_CONFIG"])\n{SERVE}'
        "for other in ('worker 0', 'worker 1', 'ps 0', 'ps 1', 'ps 2'): wait_for('config', other)",
        strategy="parameter_server",
        parameter_servers=3,
    )
    configs = scripted.texts("config")
    assert set(configs) == {"chief 0", "worker 0", "worker 1", "ps 0", "ps 1", "ps 2"}
    assert Cluster.from_environ({"TF_CONFIG": configs["worker 1"]}).workers == 2


@pytest.mark.parametrize("strategy", ["mirrored", "multi_worker_mirrored"])
def test_a_single_process_gets_no_tf_config(scripted, monkeypatch, strategy):
    alone = {"cluster": {"chief": ["a:1"]}, "task": {"type": "chief", "index": 0}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(alone))
    scripted.run('note("config", config)', workers=1, strategy=strategy)
    assert scripted.texts("config") == {"alone": "None"}


def test_the_command_and_the_output_of_each_process_are_logged(scripted, caplog):
    scripted.run(
        'note("arguments", sys.argv[1:])\n'
        "print('out of', me)\nprint('err \\udcff of', me, file=sys.stderr)"
    )
    file = str(scripted.folder / "job.json")
    assert set(scripted.texts("arguments").values()) == {f"['{file}']"}
    assert task.read_job(file) == scripted.job(strategy="multi_worker_mirrored", workers=2)
    assert f"stand_in.py {file}" in caplog.text
    lines = [record.getMessage() for record in caplog.records]
    for name in ("worker 0", "worker 1"):
        assert f"[{name}] out of {name}" in lines
        assert f"[{name}] err \\udcff of {name}" in lines


def test_progress_of_the_chief_alone_is_reported_even_after_an_unknown_event(scripted, reported):
    scripted.run(
        "parent = attach()\n"
        'os.write(parent.descriptor, b\'{"event": "of another version"}\\n\')\n'
        "from core.progress import report\n"
        "report('steps', 5 if me == 'worker 0' else 7, 10, me, 0.25)\n"
    )
    assert reported == [
        progress.Event(stage="starting 2 processes"),
        progress.Event("steps", 5, 10, "worker 0", 0.25),
    ]


# The end of the training.


def test_workers_that_stay_behind_the_chief_or_fail_after_it_are_no_failure(scripted, monkeypatch):
    monkeypatch.setattr(local, "_SECONDS_TO_SAVE", 0.5)
    scripted.run(
        f'if me == "worker 1": {FOREVER}\n'
        'if me == "worker 2":\n    wait_until_gone("worker 0")\n    sys.exit("too late")\n'
        'for other in ("worker 1", "worker 2"): wait_for("started", other)',
        workers=3,
    )


# Failures.


SERVED = {"strategy": "parameter_server"}
FAILURES = {
    "a killed worker, although its peer ends first": (
        'if me == "worker 0": sys.exit("UnavailableError: Connection reset by peer")\n'
        'wait_until_gone("worker 0")\n'
        "os.kill(os.getpid(), signal.SIGKILL)",
        {},
        "worker 1 was killed (SIGKILL); ",
    ),
    "not a worker that lost a peer, although it ends first": (
        'if me == "worker 0": sys.exit(138)\n'
        'wait_until_gone("worker 0")\n'
        'attach().fail("CheckpointError: no room")\n'
        'print("Exception ignored in: some thread")\n'
        "sys.exit(1)",
        {},
        "worker 1 failed: CheckpointError: no room; nothing was exported",
    ),
    "a crash, with the last error line of the log": (
        'print("F0101 tensor.cc:1] Check failed: 1 == 2")\n'
        'print("*** signal handler ***")\n'
        "os.kill(os.getpid(), signal.SIGABRT)",
        {"workers": 1, "strategy": "mirrored"},
        "chief crashed (SIGABRT): F0101 tensor.cc:1] Check failed: 1 == 2; ",
    ),
    "a parameter server that just ends": (
        f'if me != "ps 0": {FOREVER}',
        SERVED,
        "ps 0 ended with exit code 0: no output; ",
    ),
    "a killed parameter server": (
        'if me == "ps 0": os.kill(os.getpid(), signal.SIGKILL)\n'
        'wait_for("started", "ps 0")\n'
        'if me == "chief 0": sys.exit("UnavailableError: Socket closed")\n'
        f"{FOREVER}",
        SERVED,
        "ps 0 was killed (SIGKILL); ",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(("script", "training", "message"), FAILURES.values(), ids=FAILURES)
def test_the_error_names_the_cause(scripted, script, training, message):
    assert failure(scripted, script, **training).startswith(message)


@pytest.mark.slow
@pytest.mark.parametrize(("first", "other"), [(0, 0), (3, 1)])
def test_a_wrong_setting_is_a_value_error_with_the_line_of_the_process(scripted, first, other):
    """The first process to fail may be the last one to end."""
    with pytest.raises(ValueError, match=r"^training.devices: 9 devices, but only 1 GPUs$"):
        scripted.run(
            'line = "training.devices: 9 devices, but only 1 GPUs"\n'
            'print(line)\nif me == "worker 0": attach().fail(line)\n'
            f'time.sleep({first} if me == "worker 0" else {other})\n'
            "sys.exit(2)"
        )


@pytest.mark.slow
def test_a_process_that_ignores_sigterm_is_killed(scripted, monkeypatch, caplog):
    monkeypatch.setattr(local, "_SECONDS_TO_END", 0.3)
    message = failure(
        scripted,
        'if me == "worker 0":\n'
        "    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f'    note("deaf")\n    {FOREVER}\n'
        'wait_for("deaf", "worker 0")\n'
        "sys.exit(1)",
    )
    assert message.startswith("worker 1 ended with exit code 1")
    assert "Killing processes that are still running: worker 0" in caplog.text


# Parameter servers.


def test_a_worker_under_parameter_servers_is_restarted_on_its_port(scripted, caplog):
    scripted.run(
        'note("config", os.environ["TF_CONFIG"])\n'
        'if me == "worker 1" and len(list(folder.glob("config worker 1 *"))) <= 3:\n'
        f"    os.kill(os.getpid(), signal.SIGKILL)\n{SERVE}"
        'while len(list(folder.glob("config worker 1 *"))) <= 3: time.sleep(0.01)',
        strategy="parameter_server",
    )
    configs = [text for (name, _), text in scripted.notes("config").items() if name == "worker 1"]
    assert len(configs) == 4
    assert len(set(configs)) == 1
    for times in (1, 2, 3):
        assert (
            f"worker 1 was killed (SIGKILL); restarting it ({times} of 3 restarts)" in caplog.text
        )


@pytest.mark.slow
def test_restarts_of_workers_are_limited(scripted):
    message = failure(
        scripted,
        f'if me == "worker 0": sys.exit("RuntimeError: always")\n{FOREVER}',
        strategy="parameter_server",
    )
    assert message.startswith("worker 0 ended with exit code 1: RuntimeError: always; nothing")
    assert len([name for name, _ in scripted.notes("started") if name == "worker 0"]) == 4


# Signals.

PARENT = """
import sys
from trainer_module.cluster import local
from trainer_module.settings import TrainingJob
local.run(TrainingJob.model_validate_json(sys.argv[1]), sys.argv[2:])
"""


@pytest.fixture
def parent(scripted):
    """Start a process that runs a local cluster; it is ended with the test."""
    with contextlib.ExitStack() as exits:

        def start(script, strategy="multi_worker_mirrored"):
            job = scripted.job(strategy=strategy, workers=2).model_dump_json()
            command = [sys.executable, "-c", PARENT, job, *scripted.command(script)]
            process = exits.enter_context(subprocess.Popen(command, cwd=REPOSITORY))
            exits.callback(process.kill)
            return process

        yield start


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


def test_it_runs_in_a_thread_too(scripted):
    thread = threading.Thread(target=scripted.run, args=['note("done")'])
    thread.start()
    thread.join(120)
    assert set(scripted.texts("done")) == {"worker 0", "worker 1"}
