"""PushedBaseline: the newest served model that is not the candidate, or none."""

import shutil

import pytest
import tensorflow as tf
from tfx.types import standard_artifacts

from components.baseline import PushedBaseline, existing_model
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


def baseline(workspace, has_candidate=True):
    out = artifact(workspace / "out")
    candidate = artifact(workspace / "candidate") if has_candidate else None
    serving = str(workspace / "serving")
    PushedBaseline.test_call(serving_dir=serving, model=out, candidate=candidate)
    inputs = existing_model({"baseline_model": [out], "other": []}, "baseline_model")
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


def test_a_damaged_version_is_an_error(workspace):
    save(workspace / "serving" / "9", 1.0)
    model = workspace / "serving" / "10"
    save(model, 2.0)
    (model / "variables" / "variables.index").unlink()
    with pytest.raises(InputError, match=f"{model} is damaged, .* delete this folder"):
        baseline(workspace)


def test_a_baseline_whose_files_are_gone_is_an_error(workspace):
    save(workspace / "serving" / "9", 1.0)
    baseline(workspace)
    shutil.rmtree(workspace / "out")
    inputs = {"baseline_model": [artifact(workspace / "out")]}
    with pytest.raises(InputError, match=f"baseline_model: the model in {workspace}/out is gone"):
        existing_model(inputs, "baseline_model")


def test_the_candidate_is_not_compared_with_itself(workspace):
    save(workspace / "serving" / "1", 1.0)
    shutil.copytree(workspace / "candidate" / "Format-Serving", workspace / "serving" / "2")
    assert baseline(workspace) == 1.0


def test_a_warm_start_has_no_candidate_and_begins_with_the_newest_version(workspace):
    shutil.copytree(workspace / "candidate" / "Format-Serving", workspace / "serving" / "2")
    save(workspace / "serving" / "1", 1.0)
    assert baseline(workspace, has_candidate=False) == 3.0


def test_without_another_pushed_model_there_is_no_baseline(workspace):
    shutil.copytree(workspace / "candidate" / "Format-Serving", workspace / "serving" / "2")
    assert baseline(workspace) is None
