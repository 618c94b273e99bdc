"""The counts that Transform stores give the same model as the pass of the Trainer."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import sample_data
from tests.components.test_fast_path import SETTINGS, read_examples
from tests.components.test_fast_path import transform as transformed
from tests.trainer_module.conftest import run_task
from trainer_module.settings import TrainingJob

pytestmark = [pytest.mark.slow, pytest.mark.exhaustive]

BUCKETS = SETTINGS["ngram_buckets"]
REVIEWS = 3000
PASS = "Reading the train split once"


@pytest.fixture(scope="module")
def artifacts(tmp_path_factory):
    """Return a folder with `graph` and `transformed`, which Transform wrote from the sample."""
    folder = tmp_path_factory.mktemp("sample")
    lines = (Path(sample_data.__file__).parent / "reviews.ft.txt").read_text().splitlines(True)
    (folder / "in").mkdir()
    (folder / "in" / "reviews.ft.txt").write_text("".join(lines[:REVIEWS]))
    transformed(read_examples(folder / "in", folder), folder, ["ngrams"])
    return folder


def job(artifacts, folder, **training):
    return TrainingJob(
        train_files=[str(artifacts / "transformed" / "Split-train" / "*")],
        eval_files=[str(artifacts / "transformed" / "Split-eval" / "*")],
        transform_graph=str(artifacts / "graph"),
        serving_model_dir=str(folder / "model"),
        model_run_dir=str(folder / "run"),
        checkpoint_dir=str(folder / "checkpoints"),
        training={"epochs": 1, "batch_size_per_replica": 64, **training},
        transform=SETTINGS,
    )


def scale(folder):
    """Return the scale of the exported model, which follows the learned table."""
    weights = tf.train.load_checkpoint(str(folder / "model" / "variables" / "variables"))
    shapes = weights.get_variable_to_shape_map()
    _, found = [weights.get_tensor(name) for name in sorted(shapes) if shapes[name] == [BUCKETS]]
    return found


@pytest.fixture(scope="module")
def expected(artifacts, tmp_path_factory):
    """Return the scale that a training without the stored counts computes in its own pass."""
    folder = tmp_path_factory.mktemp("pass")
    older = folder / "older"
    shutil.copytree(artifacts, older)
    (older / "transformed" / "class_counts.npz").unlink()
    done = run_task(job(older, folder, strategy="one_device"), folder)
    assert done.code == 0, done.log
    assert PASS in done.log
    found = scale(folder)
    assert found.min() > 0 and np.ptp(found) > 1
    return found


@pytest.mark.parametrize(
    "training",
    [
        {"strategy": "one_device"},
        {"strategy": "mirrored", "devices": 2},
        {"strategy": "central_storage", "devices": 2},
        {"strategy": "multi_worker_mirrored", "workers": 2},
        {"strategy": "parameter_server", "workers": 2, "parameter_servers": 2},
    ],
    ids=lambda training: training["strategy"],
)
def test_each_strategy_has_the_scale_of_the_pass_without_one(
    artifacts, expected, tmp_path, training
):
    done = run_task(job(artifacts, tmp_path, **training), tmp_path)
    assert done.code == 0, done.log
    assert PASS not in done.log
    np.testing.assert_array_equal(scale(tmp_path), expected)
