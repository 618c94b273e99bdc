"""The commands `models` and `rollback`: damaged versions, copies, a folder that cannot be read."""

import dataclasses
import os
import re
import shutil
import subprocess

import pytest
import tensorflow as tf
from typer.testing import CliRunner

from cli.app import app
from components.run_report.history import record_outcome
from components.serving_folder import ServingFolder
from serving.rest.metrics import Metrics
from serving.rest.versions import ServedVersions
from tests.loaded import run_command
from tests.outcomes import OUTCOME
from tests.platforms.local.store import Metadata
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


@pytest.mark.parametrize("words", [["models"], ["rollback"], ["predict", "good"], ["serve"]])
def test_a_volume_that_this_machine_does_not_mount_is_no_folder_without_models(
    tmp_path, call, words
):
    mount = tmp_path / "volume"
    serving = mount / "serving"
    words += ["--set", f"kubeflow.volume={{claim: reviews, mount: {mount}}}"]
    assert call(*words, serving=serving) == (
        f"paths.serving: {serving} is on kubeflow.volume, and this machine has no folder {mount}; "
        "run the command in a pod with the volume, see docs/how-to/kubeflow.md"
    )
    mount.mkdir()
    assert re.search(f"no .*model .*{serving}|{serving}: no .*model", call(*words, serving=serving))


def test_the_number_that_a_server_names_is_listed_and_accepted(tmp_path):
    serving = tmp_path / "serving"
    for number in (1, 2, 3):
        push(serving / str(number), 0.6 + number / 10)

    def call(*words):
        paths = f"paths.root={tmp_path},paths.serving={serving}"
        done = CliRunner().invoke(app, [*words, "--set", paths])
        return done.exit_code, done.output.splitlines()

    shutil.rmtree(serving / "2" / "variables")
    code, [passed_over, done] = call("rollback")
    assert (code, done) == (0, f"{serving} serves version 1 again")
    assert passed_over == ("version 2 cannot be loaded: variables/ is missing; it is skipped")
    # A server names this number.
    copy = ServedVersions(str(serving), Metrics()).current.version
    assert copy > 3
    store = Metadata(tmp_path)
    store.add_run("2026-01-01T10:00:00", {})
    pushed = dataclasses.replace(OUTCOME, pushed_to=str(serving / "3"))
    record_outcome(store.store, "2026-01-01T10:00:00", pushed)
    _, [heading, *rows] = call("models")
    assert "also served as" in heading
    assert rows[0].split()[2:7] == ["0.9123", "0.9012", "to", "0.9234", "2026-01-01T10:00:00"]
    assert [line.split()[0] for line in rows] == ["3", "2", "1"]
    assert [line.split()[-1] for line in rows] == ["back", "damaged", "served"]
    assert rows[2].split()[1] == str(copy)
    assert call("rollback", "3")[0] == 0
    assert call("rollback", str(copy)) == (0, [f"{serving} serves version 1 again"])
    code, [line] = call("rollback", "2")
    assert code == 2
    assert "version 2 cannot be loaded: variables/ is missing; nothing was changed" in line


def test_a_model_has_the_run_that_pushed_it_with_the_interval_of_its_accuracy(tmp_path):
    serving, run, metadata = tmp_path / "serving", "first", Metadata(tmp_path)
    for number in (1, 2):
        push(serving / str(number), 0.6 + number / 10)
    metadata.add_run(run)
    outcome = dataclasses.replace(
        OUTCOME, pushed_to=f"{serving}/1", accuracy=0.9, accuracy_interval=(0.8256, 0.9448)
    )
    record_outcome(metadata.store, run, outcome)
    paths = f"paths.root={tmp_path},paths.serving={serving}"
    done = CliRunner().invoke(app, ["models", "--set", paths], env={"COLUMNS": "200"})
    second, first = (line.split() for line in done.output.splitlines()[1:])
    assert first[-5:] == ["0.9000", "0.8256", "to", "0.9448", run]
    assert second[-4:-1] == ["–", "–", "–"]


def test_versions_without_all_files_are_not_an_empty_folder(call, tmp_path):
    push(tmp_path / "serving" / "7")
    (tmp_path / "serving" / "7" / "variables" / "variables.index").write_bytes(b"")
    line = call("predict", "good")
    assert "no version in" in line
    assert "in the newest one variables/variables.index is empty" in line


@pytest.mark.parametrize("command", ["models", "rollback"])
def test_a_folder_that_cannot_be_read_is_2_and_one_line(call, command):
    assert call(command, serving=__file__).startswith("NotADirectoryError: ")


def test_the_list_finds_damage_and_loads_tensorflow_for_a_changed_version_alone(tmp_path):
    serving = tmp_path / "serving"
    destination = ServingFolder(str(serving))
    for number in (1, 2):
        model = tmp_path / f"trained{number}"
        push(model, 0.6 + number / 10)
        destination.push(str(model), str(tmp_path / f"artifact{number}"))
    words = ("models", "--set", f"paths.root={tmp_path},paths.serving={serving}")
    newest = str(max(map(int, os.listdir(serving))))

    def states():
        done, printed, loaded = run_command(*words, COLUMNS="200")
        assert done.returncode == 0, done.stderr
        return [line.split()[-1] for line in printed.splitlines()[1:]], loaded

    listed, loaded = states()
    assert listed == ["served", "–"]
    assert loaded & {"apache_beam", "keras", "tensorflow", "tfx"} == set()
    sums = serving / newest / "assets.extra" / "SHA256SUMS"
    subprocess.run(["sha256sum", "--check", "--quiet", sums], cwd=serving / newest, check=True)
    weights = serving / newest / "variables" / "variables.data-00000-of-00001"
    content = weights.read_bytes()
    weights.write_bytes(bytes(255 - byte for byte in content))
    listed, _ = states()
    assert listed == ["damaged", "served"]
    # Versions of another program have no digests.
    weights.write_bytes(content)
    sums.unlink()
    listed, loaded = states()
    assert listed == ["served", "–"]
    assert "tensorflow" in loaded


def test_a_folder_that_cannot_be_written_is_2_and_one_line(call, tmp_path, monkeypatch):
    for number in (1, 2):
        push(tmp_path / "serving" / str(number), 0.6 + number / 10)

    def refuse(folder):
        raise tf.errors.PermissionDeniedError(None, None, f"{folder}; Permission denied")

    # Not by the mode of the folder, which does not bind root.
    monkeypatch.setattr(tf.io.gfile, "mkdir", refuse)
    assert call("rollback").startswith("PermissionDeniedError: ")
    assert sorted(os.listdir(tmp_path / "serving")) == ["1", "2"]
    assert call("rollback", "").startswith("VERSION: the value is empty")
