"""The commands `models` and `rollback` on a folder that cannot be read or written."""

import os

import pytest
import tensorflow as tf
from typer.testing import CliRunner

from cli.app import app
from tests.serving.models import push

pytestmark = pytest.mark.slow


@pytest.fixture
def call(tmp_path):
    def call(*words, serving=tmp_path / "serving"):
        paths = f"paths.root={tmp_path},paths.serving={serving}"
        done = CliRunner().invoke(app, [*words, "--set", paths])
        assert done.exit_code == 2
        [line] = done.output.splitlines()
        return line.removeprefix("paths.serving: cannot be read or written: ")

    return call


@pytest.mark.parametrize("command", ["models", "rollback"])
def test_a_folder_that_cannot_be_read_is_2_and_one_line(call, command):
    assert call(command, serving=__file__).startswith("NotADirectoryError: ")


def test_a_folder_that_cannot_be_written_is_2_and_one_line(call, tmp_path, monkeypatch):
    for number in (1, 2):
        push(tmp_path / "serving" / str(number), 0.6 + number / 10)

    def refuse(folder):
        raise tf.errors.PermissionDeniedError(None, None, f"{folder}; Permission denied")

    # Not by the mode of the folder, which does not bind root.
    monkeypatch.setattr(tf.io.gfile, "mkdir", refuse)
    assert call("rollback").startswith("PermissionDeniedError: ")
    assert sorted(os.listdir(tmp_path / "serving")) == ["1", "2"]
    assert call("rollback", "").startswith(f"{tmp_path}/serving: no version ''; ")
