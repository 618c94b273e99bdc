"""Checkpoints: their content, when they are written, and errors of damaged ones."""

import math
from dataclasses import asdict
from types import SimpleNamespace

import pytest
import tf_keras

from tests.trainer_module.one_weight import make_model, set_weight, take_step, weight
from trainer_module.loop.callbacks import EarlyStopping, SaveRegularly
from trainer_module.loop.checkpoints import CheckpointError, Checkpoints, State
from trainer_module.loop.finite import NotFiniteError

BATCH = 32


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "checkpoints"


@pytest.fixture
def make(folder):
    """Return a function: (first weight) -> (model, its checkpoints)."""

    def make(value=0.0, *, chief=True):
        model = make_model(value)
        checkpoints = Checkpoints(str(folder), model, chief=chief, name="worker-1")
        checkpoints.state.global_batch = BATCH
        return model, checkpoints

    return make


def names(folder):
    return sorted(file.name for file in folder.iterdir())


def test_a_checkpoint_has_the_model_the_optimizer_the_steps_and_the_state(make):
    model, checkpoints = make(2.0)
    take_step(model)
    known = {
        "global_batch": BATCH,
        "stopped": True,
        "best_epoch": 1,
        "usage": {"steps": 7},
        "curve": [{"step": 7.0, "steps": 7.0, "loss": 0.5, "accuracy": 0.75}],
        "history": [{"val_loss": 0.25}],
        "skipped_warm_start": "vocabulary differs",
        "skipped_updates": 3,
    }
    for name, value in known.items():
        setattr(checkpoints.state, name, value)
    checkpoints.save(7)
    other, restored = make()
    assert restored.restore(BATCH) == 7
    assert weight(other) == weight(model) != 2.0
    assert asdict(restored.state) == known
    assert known.keys() == asdict(State()).keys(), "a field that this test does not know"
    for trained in (model, other):
        take_step(trained)
    assert weight(other) == weight(model), "the state of the optimizer was lost"
    assert int(other.optimizer.iterations) == 2


def test_the_latest_checkpoint_counts_and_the_one_before_it_is_kept(make, folder):
    model, checkpoints = make()
    for step in (1, 2, 3):
        set_weight(model, float(step))
        checkpoints.save(step)
    assert names(folder) == [
        "checkpoint",
        *(f"ckpt-{n}.{end}" for n in (2, 3) for end in ("data-00000-of-00001", "index")),
    ]
    other, restored = make()
    assert (restored.restore(BATCH), weight(other)) == (3, 3.0)


def test_only_the_chief_s_checkpoints_count(make, folder):
    folder.mkdir()
    (folder / "running.json").touch()
    _, of_worker = make(5.0, chief=False)
    of_worker.save(9)
    assert make()[1].restore(BATCH) == 0
    make(2.0)[1].save(4)
    worker, checkpoints = make(chief=False)
    assert (checkpoints.restore(BATCH), weight(worker)) == (4, 2.0)
    checkpoints.remove()
    assert folder.exists(), "a worker has removed what the chief may still need"
    make()[1].remove()
    assert not folder.exists()


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        # The bytes that are left of a file; None: the file is gone.
        ("ckpt-2.data-00000-of-00001", 20),
        ("ckpt-2.index", None),
        ("checkpoint", 5),
    ],
)
def test_a_checkpoint_that_cannot_be_read_is_one_line_and_no_training_from_scratch(
    make, folder, name, kept
):
    _, checkpoints = make()
    checkpoints.save(1)
    checkpoints.save(2)
    content = (folder / name).read_bytes()
    (folder / name).unlink()
    if kept is not None:
        (folder / name).write_bytes(content[:kept])
    with pytest.raises(CheckpointError) as error:
        make()[1].restore(BATCH)
    [line] = str(error.value).splitlines()
    assert line.startswith(f"{folder}/c")
    assert "this checkpoint cannot be read (" in line
    assert line.endswith(f"remove {folder} to start the training from the beginning")


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_weights_that_are_not_finite_are_not_written(make, folder, value):
    model, checkpoints = make(2.0)
    checkpoints.save(1)
    set_weight(model, value)
    with pytest.raises(NotFiniteError, match=r"^the weights dense.*/kernel:0 are not finite") as e:
        checkpoints.save(2)
    assert "after step 2, nothing was exported; a smaller training.learning_rate" in str(e.value)
    other, restored = make()
    assert (restored.restore(BATCH), weight(other)) == (1, 2.0)


def test_a_checkpoint_with_weights_that_are_not_finite_is_refused(make, folder, monkeypatch):
    """Such as one of an earlier version."""
    monkeypatch.setattr("trainer_module.loop.checkpoints.check_weights", lambda *_: None)
    make(math.nan)[1].save(3)
    with pytest.raises(CheckpointError) as error:
        make()[1].restore(BATCH)
    [line] = str(error.value).splitlines()
    assert line.startswith(f"{folder}/ckpt-1: the weights dense")
    assert line.endswith(f"not finite; remove {folder} to start the training from the beginning")


def test_a_checkpoint_that_cannot_be_written_is_one_line(make, folder):
    folder.write_text("a file where the folder should be")
    with pytest.raises(CheckpointError, match="of step 3 cannot be written") as error:
        make()[1].save(3)
    [line] = str(error.value).splitlines()
    assert "; free space there and run again" in line


def test_the_best_weights_are_restored_and_older_ones_removed(make, folder):
    model, checkpoints = make()
    for epoch, value in enumerate([1.0, 2.0]):
        set_weight(model, value)
        checkpoints.state.best_epoch = epoch
        checkpoints.save_best()
        # Both files exist, because the checkpoint that names the second one is not written yet.
        assert len([name for name in names(folder) if name.endswith("index")]) == 1 + 2 * epoch
        checkpoints.save(epoch)
        assert f"best-{epoch}.index" in names(folder)
    assert "best-0.index" not in names(folder)
    set_weight(model, 9.0)
    checkpoints.restore_best()
    assert weight(model) == 2.0
    (folder / "best-1.index").unlink()
    with pytest.raises(CheckpointError, match="best-1: this checkpoint cannot be read"):
        checkpoints.restore_best()


class TestSaveRegularly:
    """Hooks called by hand, as the loops call them; `saved` has the steps of each checkpoint."""

    @pytest.fixture
    def saved(self):
        return []

    @pytest.fixture
    def callback(self, saved):
        """Return a function: (steps between, first step, state) -> the callback."""

        def make(every, first_step=0, state=None, vote=None):
            never = SimpleNamespace(after_step=lambda: False, now=lambda: False)
            checkpoints = SimpleNamespace(state=state or State(), save=saved.append)
            callback = SaveRegularly(checkpoints, every, 5, first_step, vote or never)
            callback.set_model(model := make_model())
            model.wait_for_steps = lambda: None
            return callback

        return make

    def epoch(self, callback, number, steps):
        for step in steps:
            callback.on_train_batch_end(step)
        callback.on_epoch_end(number, {"val_loss": 0.5})

    @pytest.mark.parametrize(
        ("every", "first", "epochs", "expected"),
        [
            # After the checkpoint at the end of an epoch the count of the steps starts again.
            (3, 0, [range(5)] * 3, [3, 5, 8, 10, 13, 15]),
            # Not between the last step of an epoch and its evaluation.
            (5, 0, [range(5)], [5]),
            # Several steps at once.
            (2, 0, [[1, 3, 4]], [2, 4, 5]),
            # A resumed training.
            (3, 6, [range(4), range(5)], [9, 10, 13, 15]),
        ],
    )
    def test_every_few_steps_and_after_every_epoch(
        self, callback, saved, every, first, epochs, expected
    ):
        regularly = callback(every, first)
        for number, steps in enumerate(epochs):
            self.epoch(regularly, number, steps)
        assert saved == expected

    @pytest.mark.parametrize(("first", "hook"), [(2, "on_train_batch_end"), (5, "on_epoch_end")])
    def test_sigterm_saves_and_ends(self, callback, saved, first, hook):
        saved_before_the_wait = []
        vote = SimpleNamespace(
            after_step=lambda: True,
            now=lambda: True,
            wait_for_all=lambda: saved_before_the_wait.append(list(saved)),
        )
        with pytest.raises(SystemExit) as ended:
            getattr(callback(100, first, State(), vote), hook)(0)
        assert ended.value.code == 143
        assert saved == ([3] if first == 2 else [5])
        assert saved_before_the_wait == [saved], "another process may still need this one"

    def test_sigterm_in_the_last_step_of_an_epoch_waits_for_the_evaluation(self, callback, saved):
        vote = SimpleNamespace(after_step=lambda: True)
        callback(100, 4, State(), vote).on_train_batch_end(0)
        assert saved == []


def test_the_checkpoint_of_another_number_of_devices_is_refused(make, folder):
    _, checkpoints = make(1.0)
    checkpoints.restore(BATCH)
    checkpoints.save(1)
    with pytest.raises(CheckpointError) as error:
        make()[1].restore(2 * BATCH)
    assert str(error.value) == (
        f"{folder}/ckpt-1: this checkpoint was written with 32 Examples a step, now 64; train on "
        f"as many devices as before, or remove {folder} to start the training from the beginning"
    )


def test_the_checkpoint_of_another_model_is_refused(make, folder):
    make(1.0)[1].save(1)
    other = tf_keras.Sequential([tf_keras.layers.Dense(1), tf_keras.layers.Dense(1)])
    other.build([None, 1])
    other.compile(tf_keras.optimizers.legacy.Adagrad(0.1), "mse")
    checkpoints = Checkpoints(str(folder), other, chief=True, name="chief")
    with pytest.raises(CheckpointError, match="ckpt-1: this checkpoint cannot be read"):
        checkpoints.restore(BATCH)


@pytest.mark.parametrize(
    ("patience", "losses", "last", "best"),
    [
        (1, [0.5, 0.4, 0.45, 0.1], 3, 2),
        (2, [0.5, 0.4, 0.45, 0.3, 0.35, 0.36, 0.1], 6, 4),
        (3, [0.5, 0.4, 0.45, 0.41], 4, 2),
        # A loss must be lower, not equal.
        (1, [0.5, 0.5, 0.1], 2, 1),
    ],
)
def test_it_ends_after_that_many_epochs_without_a_better_one(make, patience, losses, last, best):
    model, checkpoints = make()
    model.stop_training = False
    callback = EarlyStopping(patience, checkpoints)
    callback.set_model(model)
    for epoch, loss in enumerate(losses):
        set_weight(model, epoch + 1.0)
        callback.on_epoch_end(epoch, {"val_loss": loss})
        checkpoints.state.history.append({"val_loss": loss})
        if model.stop_training:
            break
    assert weight(model) == last
    assert checkpoints.state.best_epoch == best - 1
    checkpoints.restore_best()
    assert weight(model) == best
