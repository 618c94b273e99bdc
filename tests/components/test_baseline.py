"""PushedBaseline: the last pushed model that is not the candidate, or none."""

import shutil

import pytest
import tensorflow as tf
from tfx.types import standard_artifacts

from components.baseline.pushed import Executor, without_missing_model
from core.errors import InputError

pytestmark = pytest.mark.slow


def save(folder, value):
    model = tf.Module()
    model.value = tf.Variable(value)
    model.answer = tf.function(lambda: model.value, input_signature=[])
    tf.saved_model.save(model, str(folder))


def artifact(uri):
    model = standard_artifacts.Model()
    model.uri = str(uri)
    return model


@pytest.fixture
def workspace(tmp_path):
    candidate = tmp_path / "candidate"
    save(candidate / "Format-Serving", 3.0)
    return tmp_path


def baseline(workspace, **properties):
    out = artifact(workspace / "out")
    Executor().Do(
        {"candidate": [artifact(workspace / "candidate")]},
        {"model": [out]},
        {"serving_dir": str(workspace / "serving"), **properties},
    )
    inputs = without_missing_model({"baseline_model": [out], "other": []}, "baseline_model")
    if "baseline_model" not in inputs:
        return None
    assert "other" in inputs
    model = tf.saved_model.load(str(workspace / "out" / "Format-Serving"))
    return model.answer().numpy()


def test_before_the_first_push_there_is_no_baseline(workspace):
    assert baseline(workspace) is None


def test_the_newest_version_has_the_greatest_number(workspace):
    save(workspace / "serving" / "9", 1.0)
    save(workspace / "serving" / "10", 2.0)
    (workspace / "serving" / "notes").mkdir()
    assert baseline(workspace) == 2.0


def test_the_candidate_is_not_compared_with_itself(workspace):
    save(workspace / "serving" / "1", 1.0)
    shutil.copytree(workspace / "candidate" / "Format-Serving", workspace / "serving" / "2")
    assert baseline(workspace) == 1.0


def test_without_another_pushed_model_there_is_no_baseline(workspace):
    shutil.copytree(workspace / "candidate" / "Format-Serving", workspace / "serving" / "2")
    assert baseline(workspace) is None


def test_a_configured_baseline_replaces_the_last_pushed_model(workspace):
    save(workspace / "serving" / "1", 1.0)
    save(workspace / "mine", 5.0)
    assert baseline(workspace, model_dir=str(workspace / "mine")) == 5.0


def test_a_configured_baseline_must_be_a_saved_model(workspace):
    with pytest.raises(InputError, match=r"evaluation\.baseline_model: no SavedModel in"):
        baseline(workspace, model_dir=str(workspace / "serving"))
