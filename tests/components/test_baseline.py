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
def ground(tmp_path):
    candidate = tmp_path / "candidate"
    save(candidate / "Format-Serving", 3.0)
    return tmp_path


def baseline(ground, **properties):
    out = artifact(ground / "out")
    Executor().Do(
        {"candidate": [artifact(ground / "candidate")]},
        {"model": [out]},
        {"serving_dir": str(ground / "serving"), **properties},
    )
    inputs = without_missing_model({"baseline_model": [out], "other": []}, "baseline_model")
    if "baseline_model" not in inputs:
        return None
    assert "other" in inputs
    model = tf.saved_model.load(str(ground / "out" / "Format-Serving"))
    return model.answer().numpy()


def test_before_the_first_push_there_is_none(ground):
    assert baseline(ground) is None


def test_the_newest_version_is_taken_by_number(ground):
    save(ground / "serving" / "9", 1.0)
    save(ground / "serving" / "10", 2.0)
    (ground / "serving" / "notes").mkdir()
    assert baseline(ground) == 2.0


def test_the_candidate_is_not_compared_with_itself(ground):
    save(ground / "serving" / "1", 1.0)
    shutil.copytree(ground / "candidate" / "Format-Serving", ground / "serving" / "2")
    assert baseline(ground) == 1.0


def test_only_the_candidate_was_pushed(ground):
    shutil.copytree(ground / "candidate" / "Format-Serving", ground / "serving" / "2")
    assert baseline(ground) is None


def test_the_model_that_is_set_wins(ground):
    save(ground / "serving" / "1", 1.0)
    save(ground / "mine", 5.0)
    assert baseline(ground, model_dir=str(ground / "mine")) == 5.0


def test_a_model_that_is_set_must_be_one(ground):
    with pytest.raises(InputError, match=r"evaluation\.baseline_model: no SavedModel in"):
        baseline(ground, model_dir=str(ground / "serving"))
