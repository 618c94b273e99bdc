"""RunReport on a cluster: the page, and the figures in the form of the platforms' own classes."""

import re

import pytest
from kfp.dsl import ClassificationMetrics, Metrics
from tfx.types import standard_artifacts

from components.artifacts import Classification, KeyFigures, RejectedLines, Report
from components.run_report.component import Executor, classification, key_figures
from components.run_report.evaluation import read_evaluation
from tests.components.run_report.artifacts import write_run

INPUTS = {
    "rejected": RejectedLines,
    "examples": standard_artifacts.Examples,
    "model_run": standard_artifacts.ModelRun,
    "evaluation": standard_artifacts.ModelEvaluation,
    "blessing": standard_artifacts.ModelBlessing,
}
OUTPUTS = {"report": Report, "metrics": KeyFigures, "classification": Classification}


def test_the_figures_have_the_form_of_kfps_own_class(tmp_path):
    found = read_evaluation(write_run(tmp_path).uris["evaluation"])
    expected = ClassificationMetrics()
    thresholds, rates, recalls, _ = zip(*found.curve, strict=True)
    expected.log_roc_curve(fpr=list(rates), tpr=list(recalls), threshold=list(thresholds))
    expected.log_confusion_matrix(["negative", "positive"], found.confusion)
    assert classification(found) == expected.metadata


def test_the_metrics_have_the_form_of_kfps_own_class_without_undefined_ones(tmp_path):
    expected = Metrics()
    # Without a positive prediction the precision is not defined.
    write_run(tmp_path, [("bad", 0), ("bad", 0)])
    for name in ("accuracy", "recall of negative reviews", "precision of negative reviews"):
        expected.log_metric(name, 1.0)
    assert key_figures(read_evaluation(str(tmp_path / "evaluation"))) == expected.metadata


@pytest.mark.slow
def test_on_a_cluster_the_report_is_the_page_and_the_figures_are_properties(tmp_path):
    write_run(tmp_path)
    (tmp_path / "blessing").mkdir()
    (tmp_path / "blessing" / "BLESSED").touch()

    def artifacts(kinds):
        found = {name: [kind()] for name, kind in kinds.items()}
        for name, [artifact] in found.items():
            artifact.uri = str(tmp_path / name)
        return found

    outputs = artifacts(OUTPUTS)
    settings = {"settings": '{"cache": true, "training": {"epochs": 2}}', "changed": '["cache"]'}
    Executor().Do(artifacts(INPUTS), outputs, {"name": "reviews", "epochs": 7, **settings})
    page = (tmp_path / "report").read_text()
    assert "The model is blessed. It was not pushed." in page
    assert "accuracy is 0.6667, evaluation.min_accuracy requires 0.8" in page
    # A parameter of the run has replaced a setting.
    assert len(re.findall(r"training\.epochs</th><td[^>]*>7</td>", page)) == 2
    [metrics], [classified] = outputs["metrics"], outputs["classification"]
    assert metrics.get_float_custom_property("accuracy") == pytest.approx(2 / 3)
    rows = classified.get_json_value_custom_property("confusionMatrix")["rows"]
    assert rows == [{"row": [2.0, 1.0]}, {"row": [1.0, 2.0]}]
