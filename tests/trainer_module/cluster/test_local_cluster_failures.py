"""Local clusters that fail: the cause, restarts, and ports in use."""

import socket

import pytest

from tests.trainer_module.scripted_cluster import FOREVER, SERVE, failure
from trainer_module.cluster import local, resources


def test_a_killed_worker_is_named_and_the_others_are_ended(scripted):
    message = failure(
        scripted,
        'wait_for("started", "worker 0")\n'
        f'if me == "worker 1": os.kill(os.getpid(), signal.SIGKILL)\n{FOREVER}',
        workers=3,
    )
    assert message == (
        "worker 1 was killed (SIGKILL); nothing was exported, run again to continue from the last "
        "checkpoint"
    )


def test_a_killed_worker_is_the_cause_even_if_its_peer_ends_first(scripted):
    message = failure(
        scripted,
        'if me == "worker 0": sys.exit("UnavailableError: Connection reset by peer")\n'
        'wait_until_gone("worker 0")\n'
        "os.kill(os.getpid(), signal.SIGKILL)",
    )
    assert message.startswith("worker 1 was killed (SIGKILL); ")


def test_of_two_failures_the_first_is_the_cause(scripted):
    message = failure(
        scripted,
        'if me == "worker 1":\n'
        '    print("ValueError: the first")\n'
        "    sys.exit(7)\n"
        'wait_until_gone("worker 1")\n'
        'sys.exit("RuntimeError: a consequence")',
    )
    assert message.startswith("worker 1 ended with exit code 7: ValueError: the first; nothing")


def test_a_process_that_lost_a_peer_is_not_the_cause_even_if_it_ends_first(scripted):
    message = failure(
        scripted,
        'if me == "worker 0":\n'
        '    attach().fail("another process of the cluster is gone")\n'
        "    sys.exit(138)\n"
        'wait_until_gone("worker 0")\n'
        'sys.exit("RuntimeError: the cause")',
    )
    assert message.startswith("worker 1 ended with exit code 1: RuntimeError: the cause; ")


def test_if_all_lost_a_peer_one_of_them_is_reported(scripted):
    message = failure(
        scripted,
        'attach().fail("another process of the cluster is gone: UnavailableError: silent")\n'
        "sys.exit(138)",
    )
    assert "failed: another process of the cluster is gone: UnavailableError: silent; " in message


def test_a_failure_that_a_process_sent_counts_before_the_end_of_others(scripted):
    message = failure(
        scripted,
        'if me == "worker 1":\n'
        '    attach().fail("CheckpointError: no room")\n'
        '    note("sent")\n'
        '    wait_until_gone("worker 0")\n'
        '    print("Exception ignored in: some thread")\n'
        "    sys.exit(1)\n"
        'wait_for("sent", "worker 1")\n'
        'sys.exit("UnavailableError: Connection reset by peer")',
    )
    assert message.startswith("worker 1 failed: CheckpointError: no room; nothing was exported")


def test_a_crash_is_reported_with_the_last_error_line_of_the_log(scripted):
    message = failure(
        scripted,
        'print("F0101 tensor.cc:1] Check failed: 1 == 2")\n'
        'print("*** signal handler ***")\n'
        "os.kill(os.getpid(), signal.SIGABRT)",
        workers=1,
        strategy="mirrored",
    )
    assert message.startswith("chief crashed (SIGABRT): F0101 tensor.cc:1] Check failed: 1 == 2; ")


def test_a_failure_without_output_is_reported_with_its_exit_code(scripted):
    message = failure(scripted, "sys.exit(3)", workers=1, strategy="mirrored")
    assert message.startswith("chief ended with exit code 3: no output; ")


def test_a_wrong_setting_is_a_value_error_with_the_line_of_the_process(scripted):
    with pytest.raises(
        ValueError, match=r"^training.devices: 9 devices, but only 1 GPUs are available$"
    ):
        scripted.run(
            'line = "training.devices: 9 devices, but only 1 GPUs are available"\n'
            'print(line)\nif me == "worker 0": attach().fail(line)\n'
            "sys.exit(2)"
        )


def test_a_wrong_setting_is_a_value_error_if_the_first_to_fail_ends_last(scripted):
    with pytest.raises(ValueError, match=r"^training.devices: 9 asked for$"):
        scripted.run(
            'line = "training.devices: 9 asked for"\n'
            'print(line)\nif me == "worker 0": attach().fail(line)\n'
            'time.sleep(3 if me == "worker 0" else 1)\n'
            "sys.exit(2)"
        )


def test_a_command_that_cannot_be_started_is_an_error(scripted):
    job = scripted.job(strategy="multi_worker_mirrored", workers=2)
    with pytest.raises(
        local.TrainingFailed, match=r"worker 0 could not be started: .*/no/such/program"
    ):
        local.run(job, ["/no/such/program"])


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


def run_with_servers(scripted, script, **training):
    scripted.run(script, strategy="parameter_server", **training)


def test_servers_are_ended_when_the_chief_has_ended(scripted):
    run_with_servers(scripted, f'{SERVE}wait_for("started", "worker 1")')
    assert set(scripted.texts("started")) >= {"chief 0", "worker 1"}


def test_a_killed_worker_under_parameter_servers_is_restarted_on_its_port(scripted, caplog):
    run_with_servers(
        scripted,
        'note("config", os.environ["TF_CONFIG"])\n'
        'if me == "worker 1" and len(list(folder.glob("config worker 1 *"))) <= 3:\n'
        f"    os.kill(os.getpid(), signal.SIGKILL)\n{SERVE}"
        'while len(list(folder.glob("config worker 1 *"))) <= 3: time.sleep(0.01)',
    )
    configs = [text for (name, _), text in scripted.notes("config").items() if name == "worker 1"]
    assert len(configs) == 4
    assert len(set(configs)) == 1
    for times in (1, 2, 3):
        again = f"worker 1 was killed (SIGKILL); restarting it ({times} of 3 restarts)"
        assert again in caplog.text


def test_restarts_of_workers_are_limited(scripted):
    message = failure(
        scripted,
        f'if me == "worker 0": sys.exit("RuntimeError: always")\n{FOREVER}',
        strategy="parameter_server",
    )
    assert message.startswith("worker 0 ended with exit code 1: RuntimeError: always; nothing")
    assert len([name for name, _ in scripted.notes("started") if name == "worker 0"]) == 4


@pytest.mark.parametrize(("victim", "name"), [("ps 0", "ps 0"), ("chief 0", "chief")])
def test_a_killed_parameter_server_or_chief_ends_the_training(scripted, victim, name):
    message = failure(
        scripted,
        f'if me == "{victim}": os.kill(os.getpid(), signal.SIGKILL)\n'
        f'wait_for("started", "{victim}")\n'
        'if me == "chief 0": sys.exit("UnavailableError: Socket closed")\n'
        f"{FOREVER}",
        strategy="parameter_server",
    )
    assert message.startswith(f"{name} was killed (SIGKILL); ")


def test_a_server_that_just_ends_is_a_failure(scripted):
    message = failure(scripted, f'if me != "ps 0": {FOREVER}', strategy="parameter_server")
    assert message.startswith("ps 0 ended with exit code 0: no output; ")


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
    """Give worker 1 of the first `times` clusters a port on which `held` listens."""
    free_ports = resources._free_ports
    calls = []

    def ports(count):
        calls.append(count)
        ports = free_ports(count)
        if len(calls) <= times:
            ports[1] = held.getsockname()[1]
        return ports

    monkeypatch.setattr(resources, "_free_ports", ports)


@pytest.fixture
def held():
    with socket.create_server(("", 0)) as held:
        yield held


def test_a_port_that_was_taken_meanwhile_is_replaced(scripted, monkeypatch, held, caplog):
    take_ports(monkeypatch, held, 2)
    scripted.run(f'{LISTEN}wait_for("listens", "worker 0")\nwait_for("listens", "worker 1")')
    port = held.getsockname()[1]
    refused = f"worker 1 cannot listen on 127.0.0.1:{port}, another process took that port"
    assert caplog.text.count(f"{refused}; retrying with other ports") == 2
    assert len(scripted.notes("refused")) == 2


def test_a_port_that_is_always_taken_is_an_error_that_names_its_process(
    scripted, monkeypatch, held
):
    take_ports(monkeypatch, held, 100)
    message = failure(scripted, f"{LISTEN}{FOREVER}")
    port = held.getsockname()[1]
    assert message == (
        f"worker 1 cannot listen on 127.0.0.1:{port}, another process took that port; "
        "gave up after 3 attempts"
    )
