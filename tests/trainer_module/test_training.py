"""Training from TFRecords to a SavedModel on one device: loops, precision, checkpoints."""

import threading

import pytest
import tensorflow as tf
import tf_keras

from core.training_summary import read_summary
from tests.exhaustive import exhaustive
from tests.trainer_module.conftest import (
    FILES,
    check_evaluation,
    learned_negation,
    make_job,
    probabilities,
    summary,
)
from trainer_module.loop.finite import NotFiniteError
from trainer_module.loop.learning_rate import WarmUp
from trainer_module.training import train, train_model

pytestmark = pytest.mark.slow


def test_a_training_writes_a_model_logs_and_figures_and_removes_its_checkpoints(trained):
    assert learned_negation(trained)
    check_evaluation(trained)
    assert list((trained / "run" / "logs" / "train").iterdir()), "no TensorBoard logs"
    assert not (trained / "checkpoints").exists()
    figures = summary(trained)
    assert figures["val_accuracy"] > 0.9
    assert figures["peak_rss_bytes"] > 2**20
    assert 0 < figures["cpu_utilisation"] <= 1.1
    assert figures["seconds"] > sum(figures["seconds_per_epoch"]) > 0
    # The last of the 16 steps of an epoch has 10 Examples.
    seconds = figures["step_seconds"] * figures["steps"]
    assert figures["examples_per_second"] * seconds == pytest.approx(3 * 250)
    assert [point["step"] for point in figures["curve"]] == list(range(1, 49))
    last = figures["epoch_metrics"][2]
    assert last.keys() == {"loss", "accuracy", "val_loss", "val_accuracy"}
    expected = {
        "model": "ngram_linear",
        "hyperparameters": {
            "length_power": 0.5,
            "scale_floor": 0.3,
            "scale_smoothing": 1.0,
            "compressed": False,
        },
        # 0.4 for 1,024 Examples.
        "learning_rate": pytest.approx(0.05),
        "strategy": "OneDeviceStrategy",
        "strategy_reason": "as set",
        "processes": 1,
        "devices": ["CPU:0"],
        "replicas": 1,
        "batch_size_per_replica": 16,
        "examples": 250,
        "epochs": 3,
        "steps_per_epoch": 16,
        "steps": 48,
        "parameter_server_bytes": [],
        **last,
    }
    assert {name: figures[name] for name in expected} == expected


def test_the_saved_model_holds_no_keras_object(trained):
    """Keras would rewrite and trace each of them again, for seconds."""
    from tensorflow.core.protobuf import saved_model_pb2

    written = (trained / "model" / "saved_model.pb").read_bytes()
    [graph] = saved_model_pb2.SavedModel.FromString(written).meta_graphs
    kinds = {node.user_object.identifier for node in graph.object_graph_def.nodes}
    assert not [kind for kind in kinds if "keras" in kind]


@pytest.mark.parametrize(
    "settings",
    [
        {"loop": "custom", "steps_per_execution": 7},
        exhaustive({"loop": "fit", "steps_per_execution": 5}),
        # With the padding of the last batch.
        {"jit_compile": True},
    ],
    ids=str,
)
def test_loops_calls_of_several_steps_and_static_shapes_have_equal_results(
    prepared, trained, tmp_path, settings
):
    train(make_job(prepared, tmp_path, **settings), None)
    assert probabilities(tmp_path) == pytest.approx(probabilities(trained), abs=1e-5)
    ours, others = summary(tmp_path), summary(trained)
    for name in ("loss", "accuracy", "val_loss", "val_accuracy", "steps"):
        assert ours[name] == pytest.approx(others[name], abs=1e-5), name


def test_a_batch_has_at_most_the_examples_of_the_train_split(prepared, tmp_path):
    """XLA pads a batch to its full size, and the learning rate is scaled with it."""
    examples = sum(FILES["train"])
    for name, batch in (("larger", 10**10), ("equal", examples)):
        folder = tmp_path / name
        folder.mkdir()
        job = make_job(prepared, folder, batch_size_per_replica=batch, jit_compile=True, epochs=2)
        train(job, None)
    larger, equal = summary(tmp_path / "larger"), summary(tmp_path / "equal")
    assert larger["batch_size_per_replica"] == examples
    assert [point["learning_rate"] for point in larger["curve"]] == [
        point["learning_rate"] for point in equal["curve"]
    ]
    assert probabilities(tmp_path / "larger") == pytest.approx(probabilities(tmp_path / "equal"))


@pytest.mark.exhaustive
@pytest.mark.parametrize("precision", ["float16", "bfloat16"])
def test_mixed_precision_learns_the_same_and_ends_with_the_training(prepared, tmp_path, precision):
    settings = {"model": "text_cnn", "mixed_precision": precision, "learning_rate": 0.08}
    train(make_job(prepared, tmp_path, epochs=6, **settings), None)
    assert learned_negation(tmp_path)
    assert tf_keras.mixed_precision.global_policy().name == "float32"


def test_updates_that_float16_skips_are_counted_and_a_training_without_any_other_fails(
    records, tmp_path
):
    settings = {
        "model": "transformer",
        "hyperparameters": {"width": 8, "layers": 1, "heads": 2, "feed_forward_width": 8},
        "mixed_precision": "float16",
        "batch_size_per_replica": 64,
    }
    job = make_job(records, tmp_path / "one step", **settings, epochs=1)
    with pytest.raises(NotFiniteError, match=r"float16: a gradient overflowed in each of the 1 st"):
        train(job, None)
    assert not (tmp_path / "one step" / "model").exists()
    train_model(make_job(records, tmp_path, **settings, epochs=5), None)
    figures = summary(tmp_path)
    assert 0 < figures["skipped_updates"] < figures["steps"]


def test_a_training_outside_the_main_thread_works_and_reports_what_it_does(
    prepared, tmp_path, reported
):
    thread = threading.Thread(target=train, args=[make_job(prepared, tmp_path, epochs=1), None])
    thread.start()
    thread.join(120)
    assert (tmp_path / "model" / "saved_model.pb").exists()
    stages = [event.stage for event in reported if event.stage]
    assert stages == [
        "building the model",
        "compiling the training step",
        "evaluating the epoch",
        "exporting the model",
    ]
    steps = [event for event in reported if event.unit == "steps"]
    assert steps[-1].done == steps[-1].total
    assert steps[-1].loss < steps[0].loss


@pytest.mark.parametrize(
    ("step", "settings", "line"),
    [
        # The loss of a step is that of the weights before their update.
        (20, {}, r"the loss is nan at step 21"),
        (20, {"checkpoint_steps": 4}, r"the weights bag/table:0 are not finite after step 20"),
        exhaustive(20, {"steps_per_execution": 8, "loop": "custom"}, r"the loss is nan at step 24"),
        (48, {"loop": "fit"}, r"the eval loss is nan after step 48"),
        exhaustive(48, {"loop": "custom"}, r"the eval loss is nan after step 48"),
        exhaustive(48, {"early_stopping": 1}, r"the eval loss is nan after step 48"),
    ],
)
def test_weights_that_an_update_destroys_are_neither_exported_nor_continued(
    records, tmp_path, monkeypatch, log, step, settings, line
):
    job = make_job(records, tmp_path, batch_size_per_replica=4, **settings)
    with monkeypatch.context() as patch:
        # The optimizer counts steps from 0.
        patch.setattr(
            WarmUp, "__call__", lambda self, done: tf.where(done < step - 1, 0.01, float("nan"))
        )
        with pytest.raises(NotFiniteError, match=rf"^{line}, nothing was exported; a smaller "):
            train(job, None)
    assert not (tmp_path / "model").exists()
    assert not (tmp_path / "run" / "training.json").exists()
    train_model(job, None)
    assert "Resuming after step 16" in log.text or "Resuming after step 32" in log.text
    assert summary(tmp_path)["val_loss"] > 0


@pytest.mark.parametrize("seed", [0, exhaustive(2**31 - 1), exhaustive(2**32 - 1)])
def test_every_seed_trains(records, tmp_path, seed):
    train_model(make_job(records, tmp_path, seed=seed, epochs=1), None)
    assert summary(tmp_path)["val_loss"] > 0


@pytest.mark.parametrize(("first", "profiled"), [(12, True), (13, False)])
def test_a_profile_of_calls_that_the_training_does_not_have_is_an_error(
    records, tmp_path, first, profiled
):
    settings = {"batch_size_per_replica": 8, "steps_per_execution": 2, "epochs": 3}
    job = make_job(records, tmp_path, **settings, profile_steps=[first, 20])
    if profiled:
        train_model(job, None)
    else:
        with pytest.raises(ValueError, match=r"\[13, 20\] begins after the last of 12 calls"):
            train_model(job, None)
    assert bool(list(tmp_path.rglob("*.xplane.pb"))) == profiled


def test_no_example_is_an_error_that_names_the_files(prepared, tmp_path):
    with pytest.raises(ValueError, match=r"no Example in .*nothing-\*.gz"):
        train(make_job(prepared, tmp_path, train="nothing-*.gz"), None)


def test_a_warm_start_begins_with_the_weights_of_the_base_model(prepared, trained, tmp_path):
    base = str(trained / "model")
    train(make_job(prepared, tmp_path, base_model=base, epochs=1, learning_rate=1e-9), None)
    assert probabilities(tmp_path) == pytest.approx(probabilities(trained), abs=1e-4)


def test_a_warm_start_that_is_skipped_is_in_the_summary(prepared, trained, tmp_path):
    base = str(trained / "model")
    job = make_job(
        prepared, tmp_path, base_model=base, epochs=2, hyperparameters={"scale_floor": 0.5}
    )
    train(job, None)
    reason = read_summary(job.model_run_dir).skipped_warm_start
    assert reason.startswith("hyperparameters.scale_floor (0.3, now 0.5) differs between")
    assert not read_summary(str(trained / "run")).skipped_warm_start
