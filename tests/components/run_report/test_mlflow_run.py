"""The metrics of a run in MLflow: each has the step to which it belongs."""

from types import SimpleNamespace

import numpy as np
import pytest

from components.evaluator.files import CANDIDATE, WHOLE, Results
from components.evaluator.metrics import Counts
from components.evaluator.settings import Evaluation
from components.run_report import mlflow_run


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
    counts = Counts.of(np.array([0, 1, 1, 1]), np.array([0.1, 0.9, 0.9, 0.2]))
    results = Results(Evaluation(), {WHOLE: {CANDIDATE: counts}})
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
    versions = [SimpleNamespace(version=n, tags={mlflow_run.MODEL_TAG: "a"}) for n in numbers]
    client = SimpleNamespace(search_model_versions=lambda filter: versions)
    assert mlflow_run.registered(client, "reviews")["a"].version == "9"
