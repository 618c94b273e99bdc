"""What a run sends to MLflow: metrics with their steps, and the identity of a pushed model."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from components.evaluator.counts import Counts
from components.evaluator.files import CANDIDATE, WHOLE, Results
from components.evaluator.thresholds import Evaluation
from components.run_report import mlflow_run, tracking
from components.run_report.classes import classes_csv
from components.run_report.history import Run
from components.run_report.mlflow_figures import figures_table
from components.run_report.mlflow_names import final_values, metric_name
from components.run_report.mlflow_run import MODEL_TAG, Record, registered
from components.serving_check.results import CheckResults, Result
from core.errors import InputError
from core.training_summary import CurvePoint, EpochMetrics
from preprocessing.labels import SENTIMENT, Labels
from tests.components.run_report.artifacts import DRIFT, SUMMARY


def test_metrics_of_steps_of_epochs_and_of_the_end():
    curve = [CurvePoint(step, 4, 0.5, 0.7, 0.1) for step in (3, 8)]
    epochs = [EpochMetrics(0.5, 0.6, loss, 0.7) for loss in (0.4, 0.3)]
    training = replace(SUMMARY, curve=curve, epoch_metrics=epochs)
    counts = Counts.from_predictions(
        np.array([0, 1, 1, 1]), np.array([0.1, 0.9, 0.9, 0.2]), SENTIMENT
    )
    results = Results(SENTIMENT, Evaluation(), {WHOLE: {CANDIDATE: counts}})
    content = SimpleNamespace(training=training, evaluation=results, comparison=DRIFT)
    found = list(mlflow_run._metrics(content))
    assert ("drift_accuracy", 0.78, 8) in found
    assert [each for each in found if each[0] == "train_loss"] == [
        *(("train_loss", 0.5, 3), ("train_loss", 0.5, 8))
    ]
    assert {each for each in found if each[0].startswith("epoch_")} == {
        *(("epoch_loss", 0.5, 4), ("epoch_accuracy", 0.6, 4)),
        *(("epoch_val_loss", 0.4, 4), ("epoch_val_accuracy", 0.7, 4)),
        *(("epoch_loss", 0.5, 8), ("epoch_accuracy", 0.6, 8)),
        *(("epoch_val_loss", 0.3, 8), ("epoch_val_accuracy", 0.7, 8)),
    }
    assert {("seconds", 7.5, 8), ("examples_per_second", 1234.5, 8)} <= set(found)
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


NAMES = (
    "lost card",
    "lost?card",
    "lost!card",
    "lost_card..2",
    "Ärger: 5 €",
    "../x/",
    "a" * 300,
    "",
)


def test_names_of_metrics_are_valid_and_different():
    from mlflow.utils.validation import _validate_metric_name

    labels = Labels(NAMES)
    names = [metric_name(labels, label) for label in range(labels.number)]
    assert names[:4] == ["lost card", "lost_card..1", "lost_card..2", "lost_card..2..3"]
    assert len(set(names)) == len(names)
    for name in names:
        _validate_metric_name(f"recall of class {name}")
        assert len(f"precision of class {name}".encode()) <= 250


@given(st.lists(st.text(max_size=6) | st.sampled_from(["a?", "a!", "a_..1"]), unique=True))
def test_any_names_of_classes_are_names_of_metrics(texts):
    from mlflow.utils.validation import _validate_metric_name

    labels = Labels((*texts, "one of two\n", "two of two\n"))
    names = [f"F1 of {metric_name(labels, label)}" for label in range(labels.number)]
    assert len(set(names)) == len(names)
    for name in names:
        _validate_metric_name(name)


def test_metrics_of_single_classes_are_in_a_table_and_no_charts():
    labels = Labels(tuple(f"topic, {n}" for n in range(4)))
    scores = np.eye(4)[np.array([0, 1, 2, 2])]
    counts = Counts.from_predictions(np.array([0, 1, 1, 2]), scores, labels)
    assert [name for name, _ in final_values(counts, labels)] == [
        "accuracy",
        "macro F1",
        "lowest recall of a class",
    ]
    assert classes_csv(counts, labels).splitlines() == [
        "class,texts,recall,precision,f1",
        '"topic, 3",0,,,',
        '"topic, 1",2,0.500000,1.000000,0.666667',
        '"topic, 2",1,1.000000,0.500000,0.666667',
        '"topic, 0",1,1.000000,1.000000,1.000000',
    ]


def test_the_table_has_all_figures_with_interval_and_served_model():
    counts = Counts.from_predictions(
        np.array([0, 1, 1, 1]), np.array([0.1, 0.9, 0.9, 0.2]), SENTIMENT
    )
    base = Counts.from_predictions(np.array([0, 1, 1, 1]), np.array([0.9] * 4), SENTIMENT)
    no_positive = Counts.from_predictions(np.array([0]), np.array([0.1]), SENTIMENT)
    check = CheckResults([Result("process", "finished"), Result("p99_ms", 20.12345, unit="ms")])

    def table(drift=None, **models):
        results = Results(SENTIMENT, Evaluation(), {WHOLE: models})
        content = SimpleNamespace(
            training=SUMMARY, evaluation=results, check=check, comparison=drift
        )
        found = json.loads(figures_table(content))
        rows = {row[0]: dict(zip(found["columns"], row, strict=True)) for row in found["data"]}
        assert len(rows) == len(found["data"])
        return rows

    rows = table(candidate=counts, baseline=base)
    assert rows["accuracy"] == {
        "part": "test split",
        "figure": "accuracy",
        "value": 0.75,
        "unit": "",
        "95 % interval": "0.3006 to 0.9544",
        "served model": 0.75,
    }
    assert rows["precision of negative reviews"]["value"] == 0.5
    assert rows["accuracy of a constant answer"]["value"] == 0.75
    training = {name: (row["value"], row["unit"]) for name, row in rows.items()
                if row["part"] == "training"}  # fmt: skip
    assert training == {
        "steps": (8, ""),
        "duration": (7.5, "s"),
        "speed": (1234, "Examples/s"),
        "peak memory": (100, "MiB"),
        "processor use": (50, "%"),
    }
    assert rows["p99 ms"]["value"] == 20.12
    assert "process" not in rows
    assert table(DRIFT, candidate=counts)["estimate of the new span"] == {
        "part": "new span",
        "figure": "estimate of the new span",
        "value": 0.88,
        "unit": "",
        "95 % interval": "0.8600 to 0.9000",
        "served model": 0.91,
    }
    undefined = table(candidate=no_positive)["recall of positive reviews"]
    assert (undefined["value"], undefined["served model"]) == ("", "")


def test_the_tags_and_the_name_of_a_run_show_its_verdict(monkeypatch):
    counts = Counts.from_predictions(np.array([0, 1]), np.array([0.1, 0.2]), SENTIMENT)
    results = Results(SENTIMENT, Evaluation(min_accuracy=0.7), {WHOLE: {CANDIDATE: counts}})
    run = Run(name="reviews", id="run-7", blessed=False, span="2026-11-28")
    content = SimpleNamespace(run=run, evaluation=results, check=None, comparison=DRIFT)
    tags = tracking._tags(content)
    assert (tags["result"], tags["span"]) == ("not blessed", "2026-11-28")
    assert tags["alarm"] == "high"
    assert tags["verdict"] == tags["mlflow.note.content"]
    assert tags["verdict"].startswith(
        "The model is not blessed and was not pushed: accuracy is 0.5"
    )
    created = []
    monkeypatch.setattr(mlflow_run, "_find_or_create", lambda *given: created.append(given[3:]))
    monkeypatch.setattr("mlflow.set_experiment", lambda name: SimpleNamespace(experiment_id="1"))
    mlflow_run._main_run(None, Record(content, tags))
    assert created == [("run-7", "not blessed: run-7")]
    refused = CheckResults([Result("p99_ms", 400.0, 250.0, "ms", "p99 is 400 ms")])
    blessed = replace(run, blessed=True, span="")
    failed = tracking._tags(
        SimpleNamespace(run=blessed, evaluation=results, check=refused, comparison=None)
    )
    assert not {"span", "alarm"} & failed.keys()
    assert failed["verdict"].endswith("failed the serving check and was not pushed: p99 is 400 ms.")


def test_two_classes_with_any_names_have_valid_names_of_metrics():
    from mlflow.utils.validation import _validate_metric_name

    labels = Labels(("why?\n", "a&b" * 200))
    counts = Counts.from_predictions(np.array([0, 1]), np.array([0.1, 0.9]), labels)
    found = dict(final_values(counts, labels))
    for name in found:
        _validate_metric_name(name)
        assert len(name.encode()) <= 250
    assert found["recall of class why__..0"] == 1.0
    titles = [name for name, _ in final_values(counts, SENTIMENT)]
    assert titles[2:] == ["recall of negative reviews", "recall of positive reviews"]


def test_mappings_of_any_texts_are_one_parameter():
    settings = {
        "data": {"labels": {"What?": "a/b", "b": None}, "format": "csv"},
        "evaluation": {"min_class_recall": {"a/b": 0.5}},
        "name": "x",
    }
    assert mlflow_run._params(settings) == {
        "data.labels": '{"What?": "a/b", "b": null}',
        "data.format": "csv",
        "evaluation.min_class_recall": '{"a/b": 0.5}',
        "name": "x",
    }
    usual = {"data": {"labels": {}}, "evaluation": {"min_class_recall": 0.4}}
    assert mlflow_run._params(usual) == {"data.labels": {}, "evaluation.min_class_recall": 0.4}
