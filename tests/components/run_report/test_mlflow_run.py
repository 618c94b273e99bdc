"""What identifies a pushed model in MLflow."""

from types import SimpleNamespace

import pytest
import tensorflow as tf

from components.run_report import tracking
from components.run_report.mlflow_run import MODEL_TAG, registered
from core.errors import InputError


def test_a_version_that_somebody_registered_by_hand_is_no_pushed_model():
    """A run whose model is unknown would count as registered, and be sent without a model."""
    by_hand = SimpleNamespace(version="3", tags={})
    newer, older = (SimpleNamespace(version=each, tags={MODEL_TAG: "a"}) for each in "21")
    client = SimpleNamespace(search_model_versions=lambda _: [by_hand, newer, older])
    assert registered(client, "reviews") == {"a": older}


@pytest.mark.parametrize(
    "error",
    [InputError("lost"), PermissionError(13), tf.errors.UnavailableError(None, None, "no network")],
    ids=["lost", "local", "bucket"],
)
def test_a_model_that_cannot_be_read_is_unknown_and_fails_no_run(monkeypatch, error):
    def refuse(model):
        raise error

    monkeypatch.setattr(tracking, "identity", refuse)
    run = SimpleNamespace(pushed_to="/serving/1", uris={"model": "/model"})
    assert tracking._pushed_content(run) == ""
