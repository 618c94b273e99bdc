"""What a run sends to MLflow: metrics with their steps, and the identity of a pushed model."""

from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from components.evaluator.counts import Counts
from components.evaluator.files import CANDIDATE, WHOLE, Results
from components.evaluator.thresholds import Evaluation
from components.run_report import mlflow_run, tracking
from components.run_report.mlflow_run import MODEL_TAG, registered
from core.errors import InputError
from preprocessing.labels import SENTIMENT


def test_metrics_of_steps_of_epochs_and_of_the_end():
    training = {
        "curve": [
            {"step": step, "loss": 0.5, "accuracy": 0.7, "learning_rate": 0.1} for step in (3, 8)
        ],
        "epoch_metrics": [{"val_loss": 0.4}, {"val_loss": 0.3}],
        "steps_per_epoch": 4,
        "steps": 8,
        "seconds": 12.5,
    }
    counts = Counts.from_predictions(
        np.array([0, 1, 1, 1]), np.array([0.1, 0.9, 0.9, 0.2]), SENTIMENT
    )
    results = Results(SENTIMENT, Evaluation(), {WHOLE: {CANDIDATE: counts}})
    found = list(mlflow_run._metrics(SimpleNamespace(training=training, evaluation=results)))
    assert [each for each in found if each[0] == "train_loss"] == [
        *(("train_loss", 0.5, 3), ("train_loss", 0.5, 8))
    ]
    assert [each for each in found if each[0].startswith("epoch_")] == [
        *(("epoch_val_loss", 0.4, 4), ("epoch_val_loss", 0.3, 8))
    ]
    assert ("seconds", 12.5, 8) in found
    assert ("accuracy", 0.75, 8) in found
    assert {step for name, _, step in found if "recall" in name} == {8}


@pytest.mark.parametrize("numbers", [("9", "10"), ("10", "9")])
def test_of_two_versions_with_the_same_model_the_oldest_is_the_registered_one(numbers):
    versions = [SimpleNamespace(version=n, tags={MODEL_TAG: "a"}) for n in numbers]
    client = SimpleNamespace(search_model_versions=lambda filter: versions)
    assert registered(client, "reviews")["a"].version == "9"


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
