"""Local clusters: the environment, the logs and the end of their processes."""

import contextlib
import json
import logging
import os
import threading
from pathlib import Path

import pytest

from core import progress
from tests.trainer_module.scripted_cluster import FOREVER, REPOSITORY
from trainer_module import task
from trainer_module.cluster import local, resources
from trainer_module.cluster.tf_config import Cluster
from trainer_module.settings import Training


def test_workers_get_a_tf_config_each(scripted):
    scripted.run('note("config", os.environ["TF_CONFIG"])', workers=3)
    configs = scripted.texts("config")
    assert set(configs) == {"worker 0", "worker 1", "worker 2"}
    clusters = [Cluster.from_environ({"TF_CONFIG": text}) for text in configs.values()]
    assert sorted(cluster.name for cluster in clusters) == sorted(configs)
    [spec] = {json.dumps(cluster.spec) for cluster in clusters}
    assert len(set(json.loads(spec)["worker"])) == 3


def test_parameter_servers_get_a_coordinator(scripted):
    script = 'note("config", os.environ["TF_CONFIG"])\nif config["task"]["type"] != "chief":\n    '
    waits = (
        "for other in ('worker 0', 'worker 1', 'ps 0', 'ps 1', 'ps 2'): wait_for('config', other)"
    )
    scripted.run(
        f"{script}{FOREVER}\n{waits}", strategy="parameter_server", workers=2, parameter_servers=3
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


def test_the_command_of_the_processes_is_logged(scripted, caplog):
    scripted.run('note("arguments", sys.argv[1:])')
    file = str(scripted.folder / "job.json")
    assert set(scripted.texts("arguments").values()) == {f"['{file}']"}
    expected = scripted.job(strategy="multi_worker_mirrored", workers=2)
    assert task.read_job(file) == expected
    assert f"stand_in.py {file}" in caplog.text


def test_the_packages_are_found_from_any_folder(scripted, monkeypatch):
    monkeypatch.chdir(scripted.folder)
    scripted.run('import trainer_module\nnote("from", trainer_module.__file__)')
    [found] = set(scripted.texts("from").values())
    assert found.startswith(REPOSITORY)


def test_lines_of_the_log_come_through_with_the_name_of_the_process(scripted, caplog):
    scripted.run("print('out of', me)\nprint('err \\udcff of', me, file=sys.stderr)")
    lines = [record.getMessage() for record in caplog.records]
    for name in ("worker 0", "worker 1"):
        assert f"[{name}] out of {name}" in lines
        assert f"[{name}] err \\udcff of {name}" in lines


def test_progress_of_the_chief_alone_is_reported(scripted):
    reports = []

    class Listener(logging.Handler):
        def emit(self, record):
            reports.append(progress.values(record))

    listener = Listener()
    progress.LOGGER.addHandler(listener)
    try:
        scripted.run(
            "attach()\n"
            "from core.progress import report\n"
            "report('steps', 5 if me == 'worker 0' else 7, 10, me)\n"
        )
    finally:
        progress.LOGGER.removeHandler(listener)
    assert reports == [{"unit": "steps", "done": 5, "total": 10, "source": "worker 0"}]


def opened_to_children(folder):
    """Return the open pipes, sockets, and files in the folder of the children."""
    opened = set()
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # the descriptor that listed the folder is closed by now
            opened.add(os.readlink(link))
    return {target for target in opened if target.startswith(("pipe:", "socket:", str(folder)))}


def test_nothing_is_left_open(scripted, tmp_path):
    opened, threads = opened_to_children(tmp_path), set(threading.enumerate())
    for _ in range(3):
        scripted.run("")
    # Threads and files of earlier tests may still appear and disappear.
    ours = {thread for thread in threading.enumerate() if thread not in threads}
    scripted.wait(lambda: not any(thread.is_alive() for thread in ours))
    assert opened_to_children(tmp_path) <= opened


# The end of the training.


def test_workers_may_end_after_the_chief_and_before_it(scripted):
    scripted.run(
        'order = ["worker 1", "worker 0", "worker 2"]\n'
        "before = order[:order.index(me)]\n"
        'for other in before: wait_for("done", other)\n'
        "time.sleep(0.2)\n"
        'note("done")',
        workers=3,
    )
    assert set(scripted.texts("done")) == {"worker 0", "worker 1", "worker 2"}


def test_a_worker_that_stays_behind_the_chief_is_ended(scripted, monkeypatch, caplog):
    monkeypatch.setattr(local, "_SECONDS_BEHIND_CHIEF", 0.5)
    scripted.run(f'if me == "worker 1":\n    {FOREVER}')
    assert "worker 1: still running after the training has finished" in caplog.text


def test_a_worker_that_fails_when_the_chief_has_succeeded_is_no_failure(scripted, caplog):
    scripted.run(
        'note("done")\nif me == "worker 1":\n'
        '    wait_until_gone("worker 0")\n    sys.exit("too late")'
    )
    assert (
        "worker 1 ended with exit code 1: too late, ignored because the training has finished"
        in caplog.text
    )


# The trainings that need a local cluster.


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
    assert local.is_needed(Training(**training), {}) == needed
    assert resources.has_peers(Training(**training)) == peers


def test_a_cluster_of_tf_config_needs_no_local_one():
    there = {"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 0}}
    training = Training(strategy="multi_worker_mirrored", workers=2)
    assert not local.is_needed(training, {"TF_CONFIG": json.dumps(there)})
