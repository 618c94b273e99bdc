"""Which servers `predict` uses."""

import os
import socket

import pytest

from serving.rest import announced
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


def test_a_server_at_another_port_is_found_until_it_ends(server, serving, tmp_path, monkeypatch):
    monkeypatch.setattr(announced.tempfile, "tempdir", str(tmp_path))
    folder, address = str(serving), f"http://127.0.0.1:{server.port}"
    assert asked(1, serving / "3") is None
    with announced.announced(address, folder):
        assert len(asked(1, serving / "3")) == 1
        assert asked(1, serving.parent / "elsewhere" / "3") is None
        place = next(tmp_path.iterdir())
        place.chmod(0o777)  # Another user could announce a server here.
        assert asked(1, serving / "3") is None
        place.chmod(0o700)
    assert announced.addresses(folder) == [] and asked(1, serving / "3") is None


def test_a_killed_server_is_forgotten_and_a_folder_without_rights_is_no_problem(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(announced.tempfile, "tempdir", str(tmp_path))
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
    monkeypatch.setattr(announced.os, "getpid", lambda: child)
    kept = announced.announced("http://127.0.0.1:1", "/s")
    kept.__enter__()
    assert announced.addresses("/s") == []
    assert [*tmp_path.glob("*/*")] == []
    # Files of another program, such as an editor.
    for suffix in ("swp", "17.swp"):
        (next(tmp_path.iterdir()) / f"{announced.folder_id('/s')}.{suffix}").touch()
    assert announced.addresses("/s") == []
    monkeypatch.setattr(announced.tempfile, "tempdir", "/proc")
    with announced.announced("http://127.0.0.1:1", "/s"):
        assert announced.addresses("/s") == []
