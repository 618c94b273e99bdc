"""RunReport on a cluster: the page, and the figures in the form of the classes of kfp."""

import re

import numpy as np
import pytest

from components.artifacts import Classification, KeyFigures
from components.evaluator.counts import Counts
from components.evaluator.files import CANDIDATE, WHOLE, Results
from components.evaluator.thresholds import Evaluation
from components.properties import BASELINE_PROPERTY
from components.run_report.component import RunReport, _write_figures
from components.run_report.verdict import LOGGED
from preprocessing.labels import Labels
from tests.components.run_report.artifacts import REVIEWS, write_run

pytestmark = pytest.mark.slow

SETTINGS = {"settings": '{"cache": true, "training": {"epochs": 2}}', "changed": '["cache"]'}


def execute(folder, reviews):
    """Run the component on a run; return the page and the artifacts with the figures."""
    write_run(folder, reviews)
    (folder / "blessing").mkdir()
    (folder / "blessing" / "BLESSED").touch()
    artifacts = {
        name: channel.type()
        for name, channel in {**RunReport.SPEC_CLASS.INPUTS, **RunReport.SPEC_CLASS.OUTPUTS}.items()
        if not channel.optional
    }
    for name, artifact in artifacts.items():
        artifact.uri = str(folder / name)
    artifacts["blessing"].set_string_custom_property(BASELINE_PROPERTY, "version 7")
    RunReport.test_call(name="reviews", epochs=7, **SETTINGS, **artifacts)
    return (folder / "report").read_text(), artifacts["metrics"], artifacts["classification"]


def test_on_a_cluster_the_report_is_the_page_and_the_figures_are_properties(tmp_path, log):
    page, metrics, classification = execute(tmp_path, REVIEWS)
    assert "The model is blessed and was not pushed." in page
    assert "accuracy is 0.6667, evaluation.min_accuracy requires 0.8" in page
    verdict = "The model is blessed and was not pushed: accuracy is 0.6667, evaluation.min_accuracy"
    assert any(line.startswith(f"{LOGGED}{verdict}") for line in log.messages)
    # The person who reads the page has no file paths.metadata.
    reason = "because a run on a cluster has no record of earlier runs"
    assert f"The settings of version 7 are unknown, {reason}." in page
    # A parameter of the run has replaced a setting.
    assert len(re.findall(r"training\.epochs</th><td[^>]*>7</td>", page)) == 2
    assert metrics.get_float_custom_property("accuracy") == pytest.approx(2 / 3)
    matrix = classification.get_json_value_custom_property("confusionMatrix")
    assert matrix["rows"] == [{"row": [2.0, 1.0]}, {"row": [1.0, 2.0]}]
    curve = classification.get_json_value_custom_property("confidenceMetrics")
    assert curve[0] == {"confidenceThreshold": 1.0, "recall": 0.0, "falsePositiveRate": 0.0}
    assert curve[-1] == {"confidenceThreshold": 0.0, "recall": 1.0, "falsePositiveRate": 1.0}


def test_undefined_metrics_are_left_out(tmp_path):
    # Without a positive prediction the precision is not defined.
    _, metrics, _ = execute(tmp_path, [("bad", 0), ("bad", 0)])
    assert metrics.mlmd_artifact.custom_properties.keys() == {
        *("accuracy", "recall of negative reviews", "precision of negative reviews"),
    }


@pytest.mark.parametrize("shift", [0, 1])
def test_a_cluster_gets_the_confusions_of_some_of_many_classes(shift):
    labels = Labels(tuple(f"topic {number}" for number in range(1000)))
    answers = np.arange(1000)
    counts = Counts.from_predictions((answers + shift) % 1000, np.eye(1000), labels)
    metrics, classification = KeyFigures(), Classification()
    results = Results(labels, Evaluation(), {WHOLE: {CANDIDATE: counts}})
    _write_figures(results, metrics, classification)
    assert metrics.get_float_custom_property("accuracy") == 1 - shift
    # A perfect model has no confusions.
    assert classification.has_custom_property("confusionMatrix") == bool(shift)
    if shift:
        matrix = classification.get_json_value_custom_property("confusionMatrix")
        assert len(matrix["rows"]) == len(matrix["annotationSpecs"]) == 25
