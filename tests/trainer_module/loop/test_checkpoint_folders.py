"""Folders of checkpoints: their names depend on the input, not on its path."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import tensorflow as tf

from examples.digest import content_digest, write_digest
from tests.trainer_module.conftest import TRAINING, fn_args, summary
from trainer_module.loop import checkpoint_folders, checkpoints
from trainer_module.loop.checkpoint_folders import continued
from trainer_module.loop.checkpoints import CheckpointError
from trainer_module.run_fn import make_job, run_fn


@pytest.fixture
def execution(prepared, tmp_path):
    """Return a function: settings -> the arguments of an execution with folders of its own."""
    places = map(str, range(10))

    def execution(**training):
        place = shutil.copytree(prepared, tmp_path / next(places))
        return fn_args(place, tmp_path / "checkpoints", **{**TRAINING, **training})

    return execution


def identity(job):
    return os.path.basename(job.checkpoint_dir).partition("-")[0]


@pytest.mark.slow
def test_the_identity_depends_on_the_input_and_the_settings(execution):
    one, same = make_job(execution()), make_job(execution())
    assert identity(one) == identity(same)
    assert one.checkpoint_dir != same.checkpoint_dir, "two at the same time would collide"
    assert identity(make_job(execution(learning_rate=0.06))) != identity(one)
    name = os.path.basename(one.checkpoint_dir)
    assert checkpoint_folders.folder_name(one, "1") == name
    assert checkpoint_folders.folder_name(one, "2") != name
    # Other Examples, of the same size.
    [file] = tf.io.gfile.glob(one.eval_files[0])
    content = Path(file).read_bytes()
    Path(file).write_bytes(content[:-8] + bytes(4) + content[-4:])
    assert checkpoint_folders.folder_name(one, "1") != name


@pytest.mark.slow
@pytest.mark.parametrize(
    "place",
    [
        "train-*.gz",
        "eval-*.gz",
        "graph/transform_fn/assets/*",
        "graph/labels.json",
        "base/variables/*.index",
    ],
)
def test_each_input_alone_changes_the_identity_and_its_path_does_not(execution, tmp_path, place):
    def job(arguments):
        folder = Path(arguments.transform_graph_path).parent
        base = folder / "base" / "variables"
        base.mkdir(parents=True)
        (base / "variables.index").write_bytes(b"checksums of the weights")
        return make_job(SimpleNamespace(**{**vars(arguments), "base_model": str(base.parent)}))

    one, same = job(execution()), job(execution())
    assert identity(one) == identity(same)
    # Another content of the same size, under the same path.
    [file, *_] = sorted(Path(same.transform_graph).parent.glob(place))
    content = file.read_bytes()
    file.write_bytes(bytes([content[0] ^ 1]) + content[1:-8] + bytes(4) + content[-4:])
    assert checkpoint_folders.folder_name(same, "1").partition("-")[0] != identity(one)


def test_examples_with_the_same_digest_of_transform_have_the_same_identity(tmp_path):
    """Transform writes the features of an Example in another order each time."""

    def digest(place, source, written, settings="1"):
        for folder, data in (("raw", source), ("made/Split-train", written)):
            (tmp_path / place / folder).mkdir(parents=True)
            (tmp_path / place / folder / "0.gz").write_bytes(data)
        write_digest(
            str(tmp_path / place / "made"), [str(tmp_path / place / "raw" / "0.gz")], [settings]
        )
        return content_digest([str(tmp_path / place / "made" / "Split-train" / "*")])

    first = digest("a", b"source--", b"one-----")
    assert digest("b", b"source--", b"another-") == first
    assert digest("c", b"other---", b"one-----") != first
    assert digest("d", b"source--", b"one-----", "2") != first
    # Each split has a digest of its own.
    assert content_digest([f"{tmp_path}/a/made/Split-eval/*"]) != first


KILLED = """
import os, signal, sys
from types import SimpleNamespace
import json
from trainer_module.loop.callbacks import SaveRegularly
from trainer_module.run_fn import run_fn
original = SaveRegularly.on_train_batch_end
def die_at_step_40(self, batch, logs=None):
    original(self, batch, logs)
    if self.step == 40:
        os.kill(os.getpid(), signal.SIGKILL)
SaveRegularly.on_train_batch_end = die_at_step_40
run_fn(SimpleNamespace(**json.loads(sys.argv[1])))
"""


@pytest.mark.slow
def test_the_next_execution_resumes_and_removes_all_checkpoints(execution, tmp_path, log):
    """The first one is killed after two of its three epochs."""
    arguments = [sys.executable, "-c", KILLED, json.dumps(vars(execution()))]
    assert subprocess.run(arguments, timeout=400).returncode == -signal.SIGKILL
    folders = tmp_path / "checkpoints"
    [killed] = folders.iterdir()
    older = shutil.copytree(killed, folders / f"{0:016x}-00000000")
    make_older(older, days=8)
    run_fn(execution())
    assert "Resuming after step 32" in log.text
    assert summary(tmp_path / "1")["steps"] == 48
    assert list(folders.iterdir()) == []


def make_older(folder, days):
    then = (folder / "checkpoint").stat().st_mtime - days * 24 * 3600
    os.utime(folder / "checkpoint", (then, then))


@pytest.fixture
def folder(tmp_path):
    """(number) -> the folder of an execution; the identity is the same for all below 10."""
    return lambda number: tmp_path / f"{number // 10:016x}-{number:08x}"


def save(folder, steps):
    """Write a checkpoint as a training does; return its manager."""
    checkpoint = tf.train.Checkpoint(steps_done=tf.Variable(steps, dtype=tf.int64))
    manager = tf.train.CheckpointManager(checkpoint, str(folder), 2)
    manager.save()
    (folder / "best-0.index").touch()
    return manager


def steps_of(folder):
    return int(tf.train.load_variable(str(folder), checkpoint_folders._STEPS))


def is_adopted(folder):
    return (folder / "checkpoint").exists()


def killed(*arguments, **options):
    raise KeyboardInterrupt


def test_the_furthest_checkpoint_of_the_same_identity_is_adopted(folder):
    for number, steps in enumerate([8, 20, 12], 1):
        save(folder(number), steps)
    save(folder(11), 40)
    with continued(str(folder(0))):
        assert steps_of(folder(0)) == 20
        assert (folder(0) / "best-0.index").exists()
    save(folder(2), 30)
    with continued(str(folder(0))):
        assert steps_of(folder(0)) == 20, "the checkpoints of this execution come first"


def test_after_a_success_folders_are_removed_in_which_nothing_was_written(folder, tmp_path):
    (tmp_path / "somebody's").mkdir()
    for number in (1, 2, 11, 12):
        save(folder(number), 20)
    make_older(folder(11), days=8)
    with continued(str(folder(0))):
        # Another execution with the same identity is running.
        save(folder(2), 28)
        save(folder(0), 30)
    assert {entry for entry in tmp_path.iterdir() if entry.name != "somebody's"} == {
        folder(number) for number in (0, 2, 12)
    }
    assert (tmp_path / "somebody's").exists()


@pytest.mark.parametrize("end", [SystemExit(143), ValueError("the loss is nan")], ids=repr)
def test_after_a_failure_or_sigterm_nothing_is_removed(folder, end):
    save(folder(1), 20)
    with pytest.raises(type(end)), continued(str(folder(0))):
        raise end
    assert steps_of(folder(0)) == steps_of(folder(1)) == 20


def test_the_age_of_a_folder_does_not_depend_on_the_clock_of_this_machine(folder, monkeypatch):
    save(folder(0), 8)
    save(folder(11), 8)
    monkeypatch.setattr("time.time", lambda: 1e10)
    with continued(str(folder(0))):
        pass
    assert folder(11).exists()


@pytest.mark.parametrize("broken", ["checkpoint", "ckpt-1.index", "ckpt-1.data-00000-of-00001"])
def test_an_unreadable_checkpoint_is_one_line_and_no_training_from_scratch(folder, broken):
    save(folder(1), 20)
    (folder(1) / broken).write_bytes(b"")
    with (
        pytest.raises(CheckpointError, match=f"remove {folder(1)} to start") as error,
        continued(str(folder(0))),
    ):
        pass
    assert len(str(error.value).splitlines()) == 1
    assert folder(1).exists()


# After a single save the checkpoint that was copied still exists.
@pytest.mark.parametrize("saves", [1, 9])
def test_a_checkpoint_that_another_training_replaces_is_not_adopted(folder, monkeypatch, saves):
    manager = save(folder(1), 20)
    copy, copied = tf.io.gfile.copy, []

    def copy_and_save(*arguments, **options):
        copy(*arguments, **options)
        copied.append(arguments)
        if len(copied) <= saves:
            manager.save()

    monkeypatch.setattr(tf.io.gfile, "copy", copy_and_save)
    with continued(str(folder(0))):
        assert not is_adopted(folder(0))
    assert folder(1).exists()


def test_an_adoption_that_is_killed_begins_again(folder, monkeypatch):
    save(folder(1), 20)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(tf.io.gfile, "copy", killed)
        with continued(str(folder(0))):
            pass
    with continued(str(folder(0))):
        assert steps_of(folder(0)) == 20


def test_a_folder_whose_removal_was_interrupted_counts_as_empty(folder, monkeypatch):
    save(folder(1), 20)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(tf.io.gfile, "rmtree", killed)
        checkpoints.remove_folder(str(folder(1)))
    with continued(str(folder(0))):
        assert not is_adopted(folder(0))
    assert not folder(1).exists()


def test_a_folder_with_a_name_from_a_person_has_no_siblings(tmp_path, folder):
    save(folder(1), 20)
    make_older(folder(1), days=8)
    with continued(str(tmp_path / "mine")):
        assert not is_adopted(tmp_path / "mine")
    assert folder(1).exists()


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "file").touch()
    with (
        pytest.raises(CheckpointError, match="file/x: no checkpoint can be written here"),
        continued(str(tmp_path / "file" / "x")),
    ):
        pass


def test_a_disk_that_is_full_when_a_checkpoint_is_adopted_is_one_line(folder, monkeypatch):
    def full(*_, **__):
        raise tf.errors.ResourceExhaustedError(None, None, "No space left on device")

    save(folder(1), 20)
    monkeypatch.setattr(tf.io.gfile, "copy", full)
    with (
        pytest.raises(CheckpointError, match=f"^{folder(0)}: .*No space left on device"),
        continued(str(folder(0))),
    ):
        pass
