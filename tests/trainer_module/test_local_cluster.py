"""Local clusters: what their processes get and how they end, with scripts that train nothing."""

import contextlib
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from preprocessing import progress
from trainer_module import local_cluster, machine, task
from trainer_module.cluster import Cluster
from trainer_module.settings import Training, TrainingJob

REPOSITORY = str(Path(__file__).parents[2])

# What each stand-in for `trainer_module.task` begins with. `me` is the name of its task; `note`
# leaves a file behind that says something about it; `wait_for` waits for the file of another one,
# `wait_until_gone` for its end.
STAND_IN = """
import json, os, signal, socket, sys, time
from pathlib import Path

config = json.loads(os.environ.get("TF_CONFIG", "null"))
me = "{type} {index}".format(**config["task"]) if config else "alone"
folder = Path(sys.argv[1]).parent

def note(kind, text=""):
    unfinished = folder / f".{kind} {me} {os.getpid()}"
    unfinished.write_text(str(text))
    unfinished.rename(folder / f"{kind} {me} {os.getpid()}")

def wait_for(kind, whom, seconds=120):
    deadline = time.monotonic() + seconds
    while not list(folder.glob(f"{kind} {whom} *")):
        assert time.monotonic() < deadline, f"{whom} did not {kind}"
        time.sleep(0.01)

def wait_until_gone(whom):
    wait_for("started", whom)
    [file] = folder.glob(f"started {whom} *")
    while Path("/proc", file.name.split()[-1]).exists():
        time.sleep(0.01)

def attach():
    from trainer_module import child
    return child.attach()

note("started")
"""
FOREVER = "time.sleep(600)"


class Ground:
    """A folder with a job, and the stand-ins that run it."""

    def __init__(self, folder):
        self.folder = folder

    def job(self, **training):
        return TrainingJob(
            train_files=["train-*"],
            eval_files=["eval-*"],
            transform_graph="graph",
            serving_model_dir="model",
            model_run_dir=str(self.folder),
            checkpoint_dir="checkpoints",
            training=Training(**training),
        )

    def command(self, script):
        file = self.folder / "stand_in.py"
        file.write_text(STAND_IN + script)
        return [sys.executable, str(file)]

    def run(self, script, workers=2, strategy="multi_worker_mirrored", **training):
        job = self.job(workers=workers, strategy=strategy, **training)
        local_cluster.run(job, self.command(script))

    def notes(self, kind):
        """What was noted, as (task, process id) -> text."""
        found = {}
        for file in self.folder.glob(f"{kind} *"):
            words = file.name.split()
            found[" ".join(words[1:-1]), int(words[-1])] = file.read_text()
        return found

    def told(self, kind):
        """The same as task -> text."""
        return {name: text for (name, _), text in self.notes(kind).items()}

    def alive(self):
        return [name for name, pid in self.notes("started") if Path(f"/proc/{pid}").exists()]

    def wait(self, what, seconds=120):
        deadline = time.monotonic() + seconds
        while not what():
            assert time.monotonic() < deadline
            time.sleep(0.01)


@pytest.fixture
def ground(tmp_path, monkeypatch, log):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    ground = Ground(tmp_path)
    yield ground
    assert ground.alive() == []


def test_workers_get_a_tf_config_each(ground):
    ground.run('note("config", os.environ["TF_CONFIG"])', workers=3)
    configs = ground.told("config")
    assert set(configs) == {"worker 0", "worker 1", "worker 2"}
    clusters = [Cluster.from_environ({"TF_CONFIG": text}) for text in configs.values()]
    assert sorted(cluster.name for cluster in clusters) == sorted(configs)
    [spec] = {json.dumps(cluster.spec) for cluster in clusters}
    assert len(set(json.loads(spec)["worker"])) == 3


def test_parameter_servers_get_a_coordinator(ground):
    script = 'note("config", os.environ["TF_CONFIG"])\nif config["task"]["type"] != "chief":\n    '
    waits = (
        "for other in ('worker 0', 'worker 1', 'ps 0', 'ps 1', 'ps 2'): wait_for('config', other)"
    )
    ground.run(
        f"{script}{FOREVER}\n{waits}", strategy="parameter_server", workers=2, parameter_servers=3
    )
    configs = ground.told("config")
    assert set(configs) == {"chief 0", "worker 0", "worker 1", "ps 0", "ps 1", "ps 2"}
    assert Cluster.from_environ({"TF_CONFIG": configs["worker 1"]}).workers == 2


@pytest.mark.parametrize("strategy", ["mirrored", "multi_worker_mirrored"])
def test_a_single_process_gets_no_tf_config(ground, monkeypatch, strategy):
    alone = {"cluster": {"chief": ["a:1"]}, "task": {"type": "chief", "index": 0}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(alone))
    ground.run('note("config", config)', workers=1, strategy=strategy)
    assert ground.told("config") == {"alone": "None"}


def test_a_person_can_repeat_what_the_processes_run(ground, caplog):
    ground.run('note("arguments", sys.argv[1:])')
    file = str(ground.folder / "job.json")
    assert set(ground.told("arguments").values()) == {f"['{file}']"}
    expected = ground.job(strategy="multi_worker_mirrored", workers=2)
    assert task.read_job(file) == expected
    assert f"stand_in.py {file}" in caplog.text


def test_the_packages_are_found_from_any_folder(ground, monkeypatch):
    monkeypatch.chdir(ground.folder)
    ground.run('import trainer_module\nnote("from", trainer_module.__file__)')
    [found] = set(ground.told("from").values())
    assert found.startswith(REPOSITORY)


def test_lines_of_the_log_come_through_with_the_name_of_the_process(ground, caplog):
    ground.run("print('out of', me)\nprint('err \\udcff of', me, file=sys.stderr)")
    lines = [record.getMessage() for record in caplog.records]
    for name in ("worker 0", "worker 1"):
        assert f"[{name}] out of {name}" in lines
        assert f"[{name}] err \\udcff of {name}" in lines


def test_progress_of_the_chief_alone_is_reported(ground):
    said = []

    class Listener(logging.Handler):
        def emit(self, record):
            said.append(progress.values(record))

    listener = Listener()
    progress.LOGGER.addHandler(listener)
    try:
        ground.run(
            "attach()\n"
            "from preprocessing.progress import report\n"
            "report('steps', 5 if me == 'worker 0' else 7, 10, me)\n"
        )
    finally:
        progress.LOGGER.removeHandler(listener)
    assert said == [{"unit": "steps", "done": 5, "total": 10, "source": "worker 0"}]


def opened_to_children(folder):
    """What this process has open to its children: pipes, sockets, and files in their folder."""
    opened = set()
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # what lists the folder is closed by now
            opened.add(os.readlink(link))
    return {target for target in opened if target.startswith(("pipe:", "socket:", str(folder)))}


def test_nothing_is_left_open(ground, tmp_path):
    opened, threads = opened_to_children(tmp_path), set(threading.enumerate())
    for _ in range(3):
        ground.run("")
    # Others' threads and files, of tests before this one, may still come and go.
    ours = {thread for thread in threading.enumerate() if thread not in threads}
    ground.wait(lambda: not any(thread.is_alive() for thread in ours))
    assert opened_to_children(tmp_path) <= opened


# How processes share the machine.


def test_workers_share_the_cores_and_this_process_keeps_its_own(ground):
    before = os.sched_getaffinity(0)
    ground.run('note("cores", json.dumps(sorted(os.sched_getaffinity(0))))')
    assert os.sched_getaffinity(0) == before
    first, second = (set(json.loads(text)) for text in ground.told("cores").values())
    assert first | second == before or len(before) == 1
    assert not first & second or len(before) == 1


def test_coordinator_and_parameter_servers_have_all_cores(ground):
    ground.run(
        'note("cores", json.dumps(sorted(os.sched_getaffinity(0))))\n'
        'if me != "chief 0": time.sleep(600)\n'
        'for other in ("worker 0", "worker 1", "ps 0"): wait_for("cores", other)',
        strategy="parameter_server",
    )
    cores = {name: set(json.loads(text)) for name, text in ground.told("cores").items()}
    everything = os.sched_getaffinity(0)
    assert cores["chief 0"] == cores["ps 0"] == everything
    assert cores["worker 0"] | cores["worker 1"] == everything or len(everything) == 1


@pytest.mark.parametrize(
    ("items", "count", "expected"),
    [
        ("abcdef", 2, ["abc", "def"]),
        ("abcde", 2, ["ab", "cde"]),
        ("abc", 3, ["a", "b", "c"]),
        ("ab", 3, ["a", "b", "a"]),
        ("a", 2, ["a", "a"]),
    ],
)
def test_shares_are_neighbours_and_about_as_large(items, count, expected):
    assert ["".join(share) for share in machine.stretches(items, count)] == expected


def gpus_of(counts):
    return {
        place.task.name: place.environ.get("CUDA_VISIBLE_DEVICES")
        for place in machine.share(counts)
    }


@pytest.mark.parametrize(
    ("visible", "expected"),
    [
        ("0,1,2,3", ["0,1", "2,3"]),
        ("GPU-a, GPU-b", ["GPU-a", "GPU-b"]),
        ("4,5,6", ["4", "5"]),
        ("0,1,-1,2", ["0", "1"]),
        ("", ["", ""]),
        ("-1", ["-1", "-1"]),
    ],
)
def test_workers_share_the_gpus(monkeypatch, visible, expected):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert list(gpus_of({"worker": 2}).values()) == expected


def test_coordinator_and_parameter_servers_get_no_gpu(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    counts = {"chief": 1, "worker": 2, "ps": 1}
    expected = {"chief": "", "worker 0": "0", "worker 1": "1", "ps 0": ""}
    assert gpus_of(counts) == expected


@pytest.mark.parametrize(
    ("nvidia_smi", "expected"),
    [("echo 0; echo 1", ["0", "1"]), ("echo no driver; exit 9", [None, None])],
)
def test_gpus_are_counted_by_nvidia_smi(monkeypatch, tmp_path, nvidia_smi, expected):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{nvidia_smi}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert list(gpus_of({"worker": 2}).values()) == expected


def test_more_workers_than_gpus_is_a_wrong_setting(ground, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    with pytest.raises(ValueError, match=r"training.workers: 3 workers, but 2 GPUs; set at most"):
        ground.run("", workers=3)


def test_a_proxy_is_not_asked_for_the_way_to_this_machine(monkeypatch):
    monkeypatch.delenv("no_grpc_proxy", raising=False)
    monkeypatch.setenv("no_proxy", "intranet,.example.com")
    [place, _] = machine.share({"worker": 2})
    assert place.environ["no_grpc_proxy"] == "intranet,.example.com,127.0.0.1"


# Failures.


def failure(ground, script, **training):
    """The message of the failed training, which has to come soon."""
    started = time.monotonic()
    with pytest.raises(local_cluster.TrainingFailed) as error:
        ground.run(script, **training)
    assert time.monotonic() - started < 300  # those that are left would sleep on
    assert len(str(error.value).splitlines()) == 1
    return str(error.value)


def test_a_killed_worker_is_named_and_the_others_are_ended(ground):
    message = failure(
        ground,
        'wait_for("started", "worker 0")\n'
        f'if me == "worker 1": os.kill(os.getpid(), signal.SIGKILL)\n{FOREVER}',
        workers=3,
    )
    assert message == (
        "worker 1 was killed (SIGKILL); nothing was exported, run again to continue from the last "
        "checkpoint"
    )


def test_a_killed_worker_is_to_blame_though_its_peer_is_seen_to_end_first(ground):
    message = failure(
        ground,
        'if me == "worker 0": sys.exit("UnavailableError: Connection reset by peer")\n'
        'wait_until_gone("worker 0")\n'
        "os.kill(os.getpid(), signal.SIGKILL)",
    )
    assert message.startswith("worker 1 was killed (SIGKILL); ")


def test_of_two_that_fail_the_first_is_to_blame(ground):
    message = failure(
        ground,
        'if me == "worker 1":\n'
        '    print("ValueError: the first")\n'
        "    sys.exit(7)\n"
        'wait_until_gone("worker 1")\n'
        'sys.exit("RuntimeError: a consequence")',
    )
    assert message.startswith("worker 1 ended with exit code 7: ValueError: the first; nothing")


def test_what_a_process_says_it_failed_of_comes_before_the_end_of_others(ground):
    message = failure(
        ground,
        'if me == "worker 1":\n'
        '    attach().failed("CheckpointError: no room")\n'
        '    note("told")\n'
        '    wait_until_gone("worker 0")\n'
        '    print("Exception ignored in: some thread")\n'
        "    sys.exit(1)\n"
        'wait_for("told", "worker 1")\n'
        'sys.exit("UnavailableError: Connection reset by peer")',
    )
    assert message.startswith("worker 1 failed: CheckpointError: no room; nothing was exported")


def test_a_crash_is_told_with_the_last_line_that_tells_of_an_error(ground):
    message = failure(
        ground,
        'print("F0101 tensor.cc:1] Check failed: 1 == 2")\n'
        'print("*** signal handler ***")\n'
        "os.kill(os.getpid(), signal.SIGABRT)",
        workers=1,
        strategy="mirrored",
    )
    assert message.startswith("chief crashed (SIGABRT): F0101 tensor.cc:1] Check failed: 1 == 2; ")


def test_a_single_process_that_says_nothing_is_told_by_its_exit_code(ground):
    message = failure(ground, "sys.exit(3)", workers=1, strategy="mirrored")
    assert message.startswith("chief ended with exit code 3: it said nothing; ")


def test_a_wrong_setting_is_a_value_error_with_the_line_of_the_process(ground):
    with pytest.raises(ValueError, match=r"^training.devices: 9 asked for, 1 GPUs are there$"):
        ground.run(
            'line = "training.devices: 9 asked for, 1 GPUs are there"\n'
            'print(line)\nif me == "worker 0": attach().failed(line)\n'
            "sys.exit(2)"
        )


def test_a_wrong_setting_is_one_though_the_first_to_tell_is_the_last_to_end(ground):
    with pytest.raises(ValueError, match=r"^training.devices: 9 asked for$"):
        ground.run(
            'line = "training.devices: 9 asked for"\n'
            'print(line)\nif me == "worker 0": attach().failed(line)\n'
            'time.sleep(3 if me == "worker 0" else 1)\n'
            "sys.exit(2)"
        )


def test_what_cannot_be_started_is_told(ground):
    job = ground.job(strategy="multi_worker_mirrored", workers=2)
    with pytest.raises(
        local_cluster.TrainingFailed, match=r"worker 0 could not be started: .*/no/such/program"
    ):
        local_cluster.run(job, ["/no/such/program"])


def test_one_that_ignores_sigterm_is_killed(ground, monkeypatch, caplog):
    monkeypatch.setattr(local_cluster, "_SECONDS_TO_END", 0.3)
    message = failure(
        ground,
        'if me == "worker 0":\n'
        "    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f'    note("deaf")\n    {FOREVER}\n'
        'wait_for("deaf", "worker 0")\n'
        "sys.exit(1)",
    )
    assert message.startswith("worker 1 ended with exit code 1")
    assert "Killing what does not end: worker 0" in caplog.text


# The end of the training.


def test_workers_may_end_after_the_chief_and_before_it(ground):
    ground.run(
        'order = ["worker 1", "worker 0", "worker 2"]\n'
        "before = order[:order.index(me)]\n"
        'for other in before: wait_for("done", other)\n'
        "time.sleep(0.2)\n"
        'note("done")',
        workers=3,
    )
    assert set(ground.told("done")) == {"worker 0", "worker 1", "worker 2"}


def test_a_worker_that_stays_behind_the_chief_is_ended(ground, monkeypatch, caplog):
    monkeypatch.setattr(local_cluster, "_SECONDS_BEHIND_CHIEF", 0.5)
    ground.run(f'if me == "worker 1":\n    {FOREVER}')
    assert "worker 1: still there though training is over" in caplog.text


def test_a_worker_that_fails_when_the_chief_has_succeeded_is_no_failure(ground, caplog):
    ground.run(
        'note("done")\nif me == "worker 1":\n'
        '    wait_until_gone("worker 0")\n    sys.exit("too late")'
    )
    assert "worker 1 ended with exit code 1: too late, but training was over by then" in caplog.text


# Parameter servers.

SERVE = f'if me != "chief 0": {FOREVER}\n'


def run_with_servers(ground, script, **training):
    ground.run(script, strategy="parameter_server", **training)


def test_servers_are_ended_when_the_chief_has(ground):
    run_with_servers(ground, f'{SERVE}wait_for("started", "worker 1")')
    assert set(ground.told("started")) >= {"chief 0", "worker 1"}


def test_a_killed_worker_beside_parameter_servers_comes_back_on_its_port(ground, caplog):
    run_with_servers(
        ground,
        'note("config", os.environ["TF_CONFIG"])\n'
        'if me == "worker 1" and len(list(folder.glob("config worker 1 *"))) <= 3:\n'
        f"    os.kill(os.getpid(), signal.SIGKILL)\n{SERVE}"
        'while len(list(folder.glob("config worker 1 *"))) <= 3: time.sleep(0.01)',
    )
    configs = [text for (name, _), text in ground.notes("config").items() if name == "worker 1"]
    assert len(configs) == 4
    assert len(set(configs)) == 1
    for times in (1, 2, 3):
        again = f"worker 1 was killed (SIGKILL); starting it again ({times} of 3 times)"
        assert again in caplog.text


def test_workers_are_not_started_for_ever(ground):
    message = failure(
        ground,
        f'if me == "worker 0": sys.exit("RuntimeError: always")\n{FOREVER}',
        strategy="parameter_server",
    )
    assert message.startswith("worker 0 ended with exit code 1: RuntimeError: always; nothing")
    assert len([name for name, _ in ground.notes("started") if name == "worker 0"]) == 4


@pytest.mark.parametrize(("victim", "name"), [("ps 0", "ps 0"), ("chief 0", "chief")])
def test_a_killed_parameter_server_or_chief_ends_the_training(ground, victim, name):
    message = failure(
        ground,
        f'if me == "{victim}": os.kill(os.getpid(), signal.SIGKILL)\n'
        f'wait_for("started", "{victim}")\n'
        'if me == "chief 0": sys.exit("UnavailableError: Socket closed")\n'
        f"{FOREVER}",
        strategy="parameter_server",
    )
    assert message.startswith(f"{name} was killed (SIGKILL); ")


def test_a_server_that_just_ends_is_a_failure(ground):
    message = failure(ground, f'if me != "ps 0": {FOREVER}', strategy="parameter_server")
    assert message.startswith("ps 0 ended with exit code 0: it said nothing; ")


# Ports.

LISTEN = """
address = config["cluster"][config["task"]["type"]][config["task"]["index"]]
try:
    server = socket.create_server(("", int(address.rpartition(":")[2])))
except OSError:
    note("refused")
    sys.exit("UnknownError: Could not start gRPC server")
note("listens")
"""


def take_ports(monkeypatch, held, times):
    """The first `times` clusters are given a port that `held` listens on, for worker 1."""
    free_ports = machine._free_ports
    calls = []

    def ports(count):
        calls.append(count)
        ports = free_ports(count)
        if len(calls) <= times:
            ports[1] = held.getsockname()[1]
        return ports

    monkeypatch.setattr(machine, "_free_ports", ports)


@pytest.fixture
def held():
    with socket.create_server(("", 0)) as held:
        yield held


def test_a_port_that_was_taken_meanwhile_is_replaced(ground, monkeypatch, held, caplog):
    take_ports(monkeypatch, held, 2)
    ground.run(f'{LISTEN}wait_for("listens", "worker 0")\nwait_for("listens", "worker 1")')
    port = held.getsockname()[1]
    refused = f"worker 1 cannot listen on 127.0.0.1:{port}, another process took that port"
    assert caplog.text.count(f"{refused}; starting again, on other ports") == 2
    assert len(ground.notes("refused")) == 2


def test_a_port_that_is_always_taken_is_told_with_its_process(ground, monkeypatch, held):
    take_ports(monkeypatch, held, 100)
    message = failure(ground, f"{LISTEN}{FOREVER}")
    port = held.getsockname()[1]
    assert message == (
        f"worker 1 cannot listen on 127.0.0.1:{port}, another process took that port; "
        "so it went 3 times"
    )


# The end of the process that started the others.

PARENT = """
import json, sys
from pathlib import Path
from trainer_module import local_cluster
from trainer_module.settings import TrainingJob
job = TrainingJob.model_validate_json(sys.argv[1])
local_cluster.run(job, sys.argv[2:])
"""


@pytest.fixture
def parent(ground):
    """Starts a process that runs a local cluster; it is ended with the test."""
    started = []

    def start(script, **training):
        job = ground.job(**{"strategy": "multi_worker_mirrored", "workers": 2, **training})
        command = [sys.executable, "-c", PARENT, job.model_dump_json(), *ground.command(script)]
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


def test_children_end_when_their_parent_is_killed(ground, parent):
    process = parent(f'attach()\nnote("attached")\n{FOREVER}')
    ground.wait(lambda: len(ground.notes("attached")) == 2)
    process.kill()
    ground.wait(lambda: not ground.alive())


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
def test_told_to_end_it_lets_the_training_save(ground, parent, number, code):
    process = parent(SAVE)
    ground.wait(lambda: len(ground.notes("ready")) == 2)
    process.send_signal(number)
    assert process.wait(120) == code
    assert set(ground.told("saved")) == {"worker 0", "worker 1"}
    assert ground.alive() == []


def test_told_to_end_twice_it_does_not_wait(ground, parent):
    process = parent(
        'signal.signal(signal.SIGTERM, lambda *_: note("told"))\nnote("ready")\n'
        "while True: time.sleep(1)"
    )
    ground.wait(lambda: len(ground.notes("ready")) == 2)
    process.send_signal(signal.SIGTERM)
    ground.wait(lambda: len(ground.notes("told")) == 2)
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 143
    assert ground.alive() == []


def test_servers_are_there_until_the_chief_has_saved(ground, parent):
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
    ground.wait(lambda: ground.notes("ready"))
    process.send_signal(signal.SIGTERM)
    assert process.wait(120) == 143
    assert ground.told("saved") == {"chief 0": "3"}


def test_it_runs_in_a_thread_too_and_leaves_the_signals_alone(ground):
    before = signal.getsignal(signal.SIGTERM)
    seen = []
    during = 'wait_for("seen", "test")'
    thread = threading.Thread(target=ground.run, args=[during])
    thread.start()
    ground.wait(lambda: len(ground.notes("started")) == 2)
    seen.append(signal.getsignal(signal.SIGTERM))
    (ground.folder / "seen test 0").touch()
    thread.join(120)
    assert not thread.is_alive()
    assert seen == [before]


def test_signal_handlers_are_put_back(ground):
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    failure(ground, "sys.exit(1)")
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before


# Who needs a local cluster.


@pytest.mark.parametrize(
    ("training", "needed", "peers"),
    [
        ({}, False, False),
        ({"strategy": "one_device"}, False, False),
        ({"strategy": "mirrored"}, False, False),
        ({"strategy": "mirrored", "devices": 2}, True, False),
        ({"devices": 2}, True, False),
        ({"strategy": "multi_worker_mirrored"}, True, False),
        ({"strategy": "multi_worker_mirrored", "workers": 2}, True, True),
        ({"strategy": "parameter_server"}, True, True),
    ],
)
def test_which_trainings_need_processes_of_their_own(training, needed, peers):
    assert local_cluster.is_needed(Training(**training), {}) == needed
    assert local_cluster.has_peers(Training(**training)) == peers


def test_a_cluster_of_tf_config_needs_no_local_one():
    there = {"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 0}}
    training = Training(strategy="multi_worker_mirrored", workers=2)
    assert not local_cluster.is_needed(training, {"TF_CONFIG": json.dumps(there)})
