"""`amazon-reviews serve` as a process, and `predict` with a running server."""

import contextlib
import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import time
import urllib.request

import pytest

from core.errors import ConfigError
from serving.rest.announced import addresses
from serving.rest.listener import listen, open_socket
from serving.rest.settings import Server
from tests.loaded import run_command
from tests.serving.rest.models import push
from tests.serving.rest.running import COMMAND, PREDICT, serving
from tests.waiting import wait

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("root")
    push(folder / "serving", 1)
    return folder


@pytest.fixture
def server(root):
    # The tests may have been started by nohup, whose children ignore SIGHUP.
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    with serving(root) as found:
        signal.signal(signal.SIGHUP, before)
        yield found


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_sigterm_completes_accepted_requests(server, root, number):
    process, address, lines = server
    assert lines[0] == f"version 1 of {root}/serving\n"
    assert address.is_well()
    body = json.dumps({"signature_name": "predict_text", "instances": ["good"]}).encode()
    head = f"POST {PREDICT} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n".encode()
    with address.connect() as connection, address.connect() as idle:
        # The headers and a part of the body: the request is accepted.
        connection.sendall(head + body[:10])
        time.sleep(0.2)
        process.send_signal(number)
        wait(lambda: not address.accepts())
        assert idle.recv(1) == b""
        connection.sendall(body[10:])
        with connection.makefile("rb") as received:
            answer = received.read()
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert answer.endswith(b'{"predictions":[{"label":1,"probability":0.9}]}')
    assert process.wait(60) == 0
    assert "Exception" not in process.stderr.read()


SIGTERM_WHEN_READY = """
import os, signal, sys
from serving.rest.server import serve
from serving.rest.listener import open_socket
from serving.rest.settings import Server

serve(sys.argv[1], open_socket(Server(port=0)), lambda *_: os.kill(os.getpid(), signal.SIGTERM))
"""


def test_every_line_of_the_log_has_its_time_and_level(server):
    process, address, _ = server
    for _ in range(5):
        with address.connect() as connection:
            connection.sendall(b"MUX / HTTP/1.1\r\n\r\n")
            connection.recv(9999)
    wrong = json.dumps({"instances": [{"b64": "/w=="}]})
    assert address.post(PREDICT, wrong.encode()).status == 400
    process.send_signal(signal.SIGTERM)
    lines = process.communicate(timeout=60)[1].splitlines()
    assert len([line for line in lines if " answered with HTTP 400: " in line]) == 1
    form = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} (INFO|WARNING) \S")
    assert [line for line in lines if not form.match(line)] == []


def test_more_connections_than_a_shell_allows_are_answered(root):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (50, hard))
    try:
        with serving(root) as (_, address, _), contextlib.ExitStack() as opened:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            clients = [opened.enter_context(address.connect()) for _ in range(100)]
            for client in clients:
                client.sendall(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
            assert {client.recv(15) for client in clients} == {b"HTTP/1.1 200 OK"}
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_hard_limit_that_the_kernel_refuses_to_set_ends_no_start(root):
    """As if fs.nr_open, which belongs to the whole machine, were lower than the hard limit."""
    refused = """
import resource
def setrlimit(*_): raise ValueError("not allowed to raise maximum limit")
resource.setrlimit = setrlimit
"""
    command = [sys.executable, "-c", refused + SIGTERM_WHEN_READY, f"{root}/serving"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


@pytest.mark.exhaustive
def test_a_sigterm_at_the_first_moment_is_not_lost(root):
    command = [sys.executable, "-c", SIGTERM_WHEN_READY, f"{root}/serving"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def test_predict_uses_a_running_server_until_ctrl_c_which_is_130(server, root):
    process, address, _ = server
    push(root / "serving", 2, 0.8)
    wait(lambda: address.get("/healthz").json["version"] == "2")
    # The server has another port than the settings.
    settings = f"paths.root={root}"
    done, out, loaded = run_command("predict", "good", "bad thing", PIPELINE_SET=settings)
    assert (out, done.stderr) == ("positive\t0.800\tgood\nnegative\t0.200\tbad thing\n", "")
    # The import of TensorFlow alone takes longer than a second.
    large = {"apache_beam", "keras", "numpy", "pandas", "tensorflow", "tf_keras", "tfx"}
    assert loaded & large == set()

    process.send_signal(signal.SIGINT)
    error = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert f"version 2 of {root}/serving answers" in error
    assert "Traceback" not in error


def test_a_server_without_a_standard_output_answers(root):
    """Some programs that start others in the background close it."""
    process = subprocess.Popen(
        ["sh", "-c", f'exec "{COMMAND}" serve --port 0 >&-'],
        env={**os.environ, "PIPELINE_SET": f"paths.root={root}"},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert "answers requests now" in process.stderr.readline()
        wait(lambda: addresses(f"{root}/serving"))
        [address] = addresses(f"{root}/serving")
        with urllib.request.urlopen(f"{address}/healthz", timeout=60) as answer:
            assert json.load(answer)["status"] == "ok"
    finally:
        process.terminate()
        assert process.wait(60) == 0, process.stderr.read()


NO_TEMPORARY_FOLDER = """
import tempfile
tempfile._candidate_tempdir_list = lambda: ["/nonexistent"]
from cli.command import main
main()
"""


@pytest.mark.parametrize("words", [("serve", "--port", "0"), ("predict", "good")])
def test_a_file_system_that_can_only_be_read_is_one_line(root, words):
    done = subprocess.run(
        [sys.executable, "-c", NO_TEMPORARY_FOLDER, *words],
        env={**os.environ, "PIPELINE_SET": f"paths.root={root}"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("no folder for temporary files can be written")
    assert done.stderr.count("\n") == 1


def test_without_a_model_it_is_2(tmp_path, call, capfd):
    assert call("serve", "--port", "0", root=tmp_path) == 2
    error = capfd.readouterr().err
    assert error.startswith(f"no model has been pushed to {tmp_path}/serving yet")
    assert error.count("\n") == 1


@pytest.mark.parametrize("host", ["a..b", "127.0.0.1"])
def test_an_address_that_cannot_be_used_is_one_line(host):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=rf"^server.host, server.port: {host}:{port} cannot"):
            open_socket(Server(host=host, port=port))


def test_the_first_address_of_a_name_that_this_machine_has_is_used(monkeypatch):
    """A container often has `::1 localhost` in /etc/hosts, and no IPv6."""
    resolve = socket.getaddrinfo

    def both(host, *arguments, **words):
        foreign = resolve("192.0.2.1", *arguments, **words)  # it is for documentation only
        return foreign + resolve("127.0.0.1", *arguments, **words)

    monkeypatch.setattr(socket, "getaddrinfo", both)
    with open_socket(Server(host="localhost", port=0)) as bound:
        assert bound.getsockname()[0] == "127.0.0.1"


def test_another_server_at_the_first_address_is_not_evaded(monkeypatch):
    resolve = socket.getaddrinfo

    def both(host, *arguments, **words):
        found = [resolve(one, *arguments, **words) for one in ("127.0.0.1", "127.0.0.2")]
        return [*found[0], *found[1]]

    monkeypatch.setattr(socket, "getaddrinfo", both)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"localhost:{port} cannot be used: Address already"):
            open_socket(Server(host="localhost", port=port))


def test_a_server_that_began_to_listen_while_the_model_was_loaded_is_one_line():
    with open_socket(Server(port=0)) as first:
        port = first.getsockname()[1]
        with open_socket(Server(port=port)) as second:
            listen(first, 1)
            with pytest.raises(ConfigError, match=rf"^server.host, server.port: 127.0.0.1:{port} "):
                listen(second, 1)
