"""Folders of checkpoints: their names depend on the input, not on its path."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import tensorflow as tf

from tests.trainer_module.conftest import TRAINING, TRANSFORM
from tests.waiting import wait
from trainer_module.cluster.tf_config import Cluster
from trainer_module.inputs import stored
from trainer_module.loop import checkpoint_folders, checkpoints
from trainer_module.loop.checkpoints import CheckpointError
from trainer_module.run_fn import make_job, run_fn


class Execution:
    """Executions of a Trainer, as TFX passes them to `run_fn`: each with folders of its own."""

    def __init__(self, prepared, folder):
        self._prepared = prepared
        self.folder = folder
        self.checkpoints = folder / "checkpoints"
        self._count = 0

    def fn_args(self, **training):
        self._count += 1
        place = self.folder / str(self._count)
        shutil.copytree(self._prepared, place)
        return SimpleNamespace(
            train_files=[str(place / "train-*.gz")],
            eval_files=[str(place / "eval-*.gz")],
            transform_graph_path=str(place / "graph"),
            serving_model_dir=str(place / "model"),
            model_run_dir=str(place / "run"),
            base_model=None,
            hyperparameters=None,
            custom_config={
                "training": {**TRAINING, **training},
                "transform": TRANSFORM,
                "code": "1",
                "checkpoints": str(self.checkpoints),
            },
        )

    def job(self, **training):
        return make_job(self.fn_args(**training))


@pytest.fixture
def execution(prepared, tmp_path):
    return Execution(prepared, tmp_path)


def identity(job):
    return os.path.basename(job.checkpoint_dir).partition("-")[0]


def test_the_identity_depends_on_the_input_and_the_settings(execution):
    one, same = execution.job(), execution.job()
    assert identity(one) == identity(same)
    assert one.checkpoint_dir != same.checkpoint_dir, "two at the same time would collide"
    assert identity(execution.job(learning_rate=0.06)) != identity(one)
    name = os.path.basename(one.checkpoint_dir)
    assert checkpoint_folders.name(one, "1") == name != checkpoint_folders.name(one, "2")
    # Other Examples, of the same size.
    [file] = tf.io.gfile.glob(one.eval_files[0])
    content = Path(file).read_bytes()
    Path(file).write_bytes(content[:-8] + bytes(4) + content[-4:])
    assert checkpoint_folders.name(one, "1") != name


def test_examples_with_the_same_digest_of_transform_have_the_same_identity(tmp_path):
    """Transform writes the features of an Example in another order each time."""

    def digest(place, source, written, settings="1"):
        for folder, data in (("raw", source), ("made/Split-train", written)):
            (tmp_path / place / folder).mkdir(parents=True)
            (tmp_path / place / folder / "0.gz").write_bytes(data)
        stored.write_content(
            str(tmp_path / place / "made"), [str(tmp_path / place / "raw" / "0.gz")], [settings]
        )
        return stored.content_digest([str(tmp_path / place / "made" / "Split-train" / "*")])

    first = digest("a", b"source--", b"one-----")
    assert digest("b", b"source--", b"another-") == first
    assert digest("c", b"other---", b"one-----") != first
    assert digest("d", b"source--", b"one-----", "2") != first


KILLED = """
import os, signal, sys
from types import SimpleNamespace
import json
from trainer_module.loop.checkpoints import SaveRegularly
from trainer_module.run_fn import run_fn
original = SaveRegularly.on_train_batch_end
def die_at_step_40(self, batch, logs=None):
    original(self, batch, logs)
    if self.step == 40:
        os.kill(os.getpid(), signal.SIGKILL)
SaveRegularly.on_train_batch_end = die_at_step_40
run_fn(SimpleNamespace(**json.loads(sys.argv[1])))
"""


def kill_one(fn_args):
    """Run a training that is killed after two of its three epochs."""
    arguments = [sys.executable, "-c", KILLED, json.dumps(vars(fn_args))]
    assert subprocess.run(arguments, timeout=400).returncode == -signal.SIGKILL


@pytest.mark.slow
def test_the_next_execution_resumes_and_removes_all_checkpoints(execution, log):
    kill_one(execution.fn_args())
    [killed] = execution.checkpoints.iterdir()
    shutil.copytree(killed, execution.checkpoints / f"{0:016x}-00000000")
    last = execution.fn_args()
    run_fn(last)
    assert "Resuming after step 32" in log.text
    assert json.loads((execution.folder / "2" / "run" / "training.json").read_text())["steps"] == 48
    # The process of the folder of other settings has ended too.
    assert list(execution.checkpoints.iterdir()) == []


def make_older(path, seconds):
    then = path.stat().st_mtime - seconds
    os.utime(path, (then, then))


CLUSTER = Cluster({"chief": ["a:1"], "worker": ["b:1"], "ps": ["c:1"]}, "chief", 0)
# A cluster restarts the first two processes, but not the third.
SIGTERM = SystemExit(143)
LOST_PEER = tf.errors.UnavailableError(None, None, "Connection reset by peer")
FAILED = tf.errors.NotFoundError(None, None, "/data/train-0.gz")


@pytest.mark.parametrize(
    ("error", "seconds", "kept"),
    [
        (SIGTERM, 30, True),
        (LOST_PEER, 30, True),
        (LOST_PEER, 3600, False),
        (FAILED, 30, False),
    ],
    ids=str,
)
def test_the_checkpoints_of_a_training_that_is_restarted_elsewhere_are_kept(
    tmp_path, error, seconds, kept
):
    ended, other = tmp_path / f"{1:016x}-00000000", tmp_path / f"{2:016x}-00000000"
    with pytest.raises(type(error)), checkpoint_folders.claimed(str(ended), CLUSTER):
        (ended / "ckpt-1.index").touch()
        raise error
    heartbeat = ended / "running.json"
    assert heartbeat.exists() == (error is not FAILED)
    if heartbeat.exists():
        heartbeat.write_text(json.dumps({**json.loads(heartbeat.read_text()), "host": "another"}))
        make_older(heartbeat, seconds)
    with checkpoint_folders.claimed(str(other)):
        checkpoint_folders.remove_stale(str(other))
    assert ended.exists() == kept


class TestStale:
    @pytest.fixture
    def folder(self, tmp_path):
        """(number) -> a folder of checkpoints as `name` calls it."""
        return lambda number: tmp_path / f"{number:016x}-00000000"

    def left_by(self, folder, mark=None, age=0.0):
        folder.mkdir()
        (folder / "ckpt-1.index").touch()
        if mark is not None:
            (folder / "running.json").write_text(json.dumps(mark))
            make_older(folder / "running.json", age)

    def test_only_folders_of_trainings_that_do_not_run_are_removed(self, folder, tmp_path):
        this = checkpoint_folders._process(os.getpid())
        # In a pod that shares the network of this machine.
        far = {**this, "host": f"{socket.gethostname()} pid:[1]"}
        assert this["host"] not in (far["host"], socket.gethostname())
        self.left_by(folder(1))
        self.left_by(folder(2), this)
        self.left_by(folder(3), {**this, "started": this["started"] - 1})
        self.left_by(folder(4), far, age=30)
        self.left_by(folder(5), far, age=3600)
        (tmp_path / "somebody's").mkdir()
        with checkpoint_folders.claimed(str(folder(0))):
            checkpoint_folders.remove_stale(str(folder(0)))
            assert folder(0).exists()
        left = {entry.name for entry in tmp_path.iterdir()}
        assert left == {folder(2).name, folder(4).name, "somebody's"}

    def test_a_folder_that_another_training_has_just_created_is_kept(self, folder):
        created, left = folder(1), folder(2)
        for each in (created, left):
            each.mkdir()
        make_older(left, checkpoint_folders.SECONDS_WITHOUT_HEARTBEAT + 60)
        with checkpoint_folders.claimed(str(folder(0))):
            checkpoint_folders.remove_stale(str(folder(0)))
        assert (created.exists(), left.exists()) == (True, False)

    def test_a_running_training_writes_heartbeats(self, folder, monkeypatch):
        monkeypatch.setattr(checkpoint_folders, "SECONDS_BETWEEN_HEARTBEATS", 0.01)
        mark = folder(0) / "running.json"
        with checkpoint_folders.claimed(str(folder(0))):
            before = mark.stat().st_mtime_ns
            wait(lambda: mark.stat().st_mtime_ns > before)
        assert not folder(0).exists()

    def test_a_folder_with_a_name_from_a_person_has_no_siblings(self, tmp_path, folder):
        self.left_by(folder(1))
        with checkpoint_folders.claimed(str(tmp_path / "mine")):
            checkpoint_folders.remove_stale(str(tmp_path / "mine"))
        assert folder(1).exists()

    def test_a_folder_that_cannot_be_written_is_one_line(self, tmp_path):
        (tmp_path / "file").touch()
        with (
            pytest.raises(CheckpointError, match="file/x: no checkpoint can be written here"),
            checkpoint_folders.claimed(str(tmp_path / "file" / "x")),
        ):
            pass


class TestAdopt:
    @pytest.fixture
    def folder(self, tmp_path):
        """(number) -> the folder of an execution; the identity is the same for all below 10."""
        return lambda number: tmp_path / f"{number // 10:016x}-{number:08x}"

    def left_by(self, folder, steps):
        checkpoint = tf.train.Checkpoint(steps_done=tf.Variable(steps, dtype=tf.int64))
        tf.train.CheckpointManager(checkpoint, str(folder), 2).save()
        (folder / "best-0.index").touch()

    def is_running(self, folder):
        mark = json.dumps(checkpoint_folders._process(os.getpid()))
        (folder / "running.json").write_text(mark)

    def steps(self, folder):
        return int(tf.train.load_variable(str(folder), checkpoint_folders._STEPS))

    def test_the_furthest_checkpoint_of_the_same_identity_is_adopted(self, folder):
        for number, steps in enumerate([8, 20, 12], 1):
            self.left_by(folder(number), steps)
        self.left_by(folder(11), 40)
        with checkpoint_folders.claimed(str(folder(0))):
            assert self.steps(folder(0)) == 20
            assert (folder(0) / "best-0.index").exists()
            # A user may still resume from the checkpoints of other settings.
            assert [number for number in (1, 2, 3, 11) if folder(number).exists()] == [11]
        self.left_by(folder(2), 30)
        with checkpoint_folders.claimed(str(folder(0))):
            assert self.steps(folder(0)) == 20, "the checkpoints of this execution come first"

    @pytest.mark.parametrize("broken", ["checkpoint", "ckpt-1.index"])
    def test_an_unreadable_checkpoint_is_one_line_and_no_training_from_scratch(
        self, folder, broken
    ):
        self.left_by(folder(1), 20)
        (folder(1) / broken).write_bytes(b"")
        with (
            pytest.raises(CheckpointError, match=f"remove {folder(1)} to start") as error,
            checkpoint_folders.claimed(str(folder(0))),
        ):
            pass
        assert len(str(error.value).splitlines()) == 1
        assert folder(1).exists()

    def test_a_checkpoint_that_another_training_is_writing_is_skipped(self, folder, caplog):
        self.left_by(folder(1), 20)
        (folder(1) / "ckpt-1.index").write_bytes(b"")
        self.is_running(folder(1))
        with checkpoint_folders.claimed(str(folder(0))):
            assert not (folder(0) / "checkpoint").exists()
        assert folder(1).exists()
        assert "skipped an unreadable checkpoint" in caplog.text

    def test_a_training_that_saves_between_two_copies_is_adopted(self, folder, monkeypatch):
        checkpoint = tf.train.Checkpoint(steps_done=tf.Variable(1, dtype=tf.int64))
        manager = tf.train.CheckpointManager(checkpoint, str(folder(1)), 2)
        manager.save()
        manager.save()
        self.is_running(folder(1))
        copy = tf.io.gfile.copy

        def copy_and_save(*arguments, **options):
            copy(*arguments, **options)
            manager.save()

        monkeypatch.setattr(tf.io.gfile, "copy", copy_and_save)
        with checkpoint_folders.claimed(str(folder(0))):
            assert self.steps(folder(0)) == 1

    def test_a_folder_whose_removal_was_interrupted_counts_as_empty(self, folder, monkeypatch):
        self.left_by(folder(1), 20)
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(tf.io.gfile, "rmtree", killed)
            checkpoints.remove_folder(str(folder(1)))
        with checkpoint_folders.claimed(str(folder(0))):
            assert not (folder(0) / "checkpoint").exists()
        assert not folder(1).exists()


def killed(*arguments):
    raise KeyboardInterrupt
