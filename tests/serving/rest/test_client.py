"""Which servers `predict` uses."""

import socket

import pytest

from serving.rest.client import ask_server
from serving.rest.settings import Server


def asked(port, model, texts=(b"good",)):
    return ask_server(Server(port=port), str(model), texts)


def test_the_server_of_the_same_version_answers(server, serving, tmp_path):
    [good, bad] = asked(server.port, serving / "3", [b"good", "b\u00e4d".encode()])
    assert (good.label, bad.label) == (1, 0)
    assert good.probability == pytest.approx(0.9)
    (tmp_path / "link").symlink_to(serving)
    assert asked(server.port, tmp_path / "link" / "3") == [good]


def test_another_version_or_folder_and_a_server_that_refuses_are_not_used(server, serving):
    for other in ("serving/4", "elsewhere/3"):
        assert asked(server.port, serving.parent / other) is None
    assert asked(server.port, serving / "3", [b"good"] * 60) is None


def test_no_server_is_no_problem(serving):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        # This server accepts connections and never answers.
        assert asked(port, serving / "3") is None
    assert asked(port, serving / "3") is None
