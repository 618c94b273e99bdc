"""The pushed model that the predictor loads."""

import pytest

from serving.predictor import NoModelError, latest_model


def push(folder, version, whole=True):
    (folder / version).mkdir(parents=True)
    if whole:
        (folder / version / "saved_model.pb").write_text("")


def test_the_highest_version_is_the_latest(tmp_path):
    for version in ("9", "10", "8"):
        push(tmp_path, version)
    assert latest_model(str(tmp_path)) == str(tmp_path / "10")


def test_incomplete_models_are_skipped(tmp_path):
    push(tmp_path, "1")
    push(tmp_path, "2", whole=False)
    push(tmp_path, "notes")
    assert latest_model(str(tmp_path)) == str(tmp_path / "1")


@pytest.mark.parametrize("there", [True, False])
def test_without_a_model_the_error_names_the_folder(tmp_path, there):
    serving = tmp_path / "serving"
    if there:
        serving.mkdir()
    with pytest.raises(NoModelError, match=f"no model has been pushed to {serving} yet"):
        latest_model(str(serving))
