"""RunReport on a cluster: the command of its container, and the figures of the platforms' pages."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from kfp.dsl import ClassificationMetrics, Metrics

from components.artifacts import SYSTEM_TYPES
from components.run_report.component import classification, key_figures
from components.run_report.evaluation import read_evaluation
from tests.components.run_report.artifacts import write_run

ROOT = Path(__file__).parents[3]
INPUTS = {
    "rejected": "components.RejectedLines",
    "statistics": "tfx.ExampleStatistics",
    "anomalies": "tfx.ExampleAnomalies",
    "examples": "tfx.Examples",
    "model": "tfx.Model",
    "model_run": "tfx.ModelRun",
    "evaluation": "tfx.ModelEvaluation",
    "blessing": "tfx.ModelBlessing",
    "check": "tfx.InfraBlessing",
}
OUTPUTS = {
    "report": "components.Report",
    "metrics": "components.KeyFigures",
    "classification": "components.Classification",
}


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
def test_the_command_of_the_container_writes_the_page_and_the_figures(tmp_path):
    run = tmp_path / "run"
    write_run(run)
    for name in INPUTS:
        (run / name).mkdir(exist_ok=True)
    (run / "blessing" / "BLESSED").touch()
    result = _call(tmp_path, run)
    page = (tmp_path / "out" / "report").read_text()
    assert "The model is blessed. It was not pushed." in page
    assert "accuracy is 0.6667, evaluation.min_accuracy requires 0.8" in page
    metadata = {
        name: output["artifacts"][0].get("metadata", {})
        for name, output in result["artifacts"].items()
    }
    assert metadata["metrics"]["accuracy"] == pytest.approx(2 / 3)
    assert metadata["classification"]["confusionMatrix"]["rows"] == [
        {"row": [2.0, 1.0]},
        {"row": [1.0, 2.0]},
    ]
    assert metadata["classification"]["confidenceMetrics"][0]["falsePositiveRate"] == 0.0
    # A parameter of the run has replaced a setting.
    assert re.search(r"training\.epochs</th><td[^>]*>7</td>", page)


def _call(folder, run):
    """Run the step as a launcher does; return its executor output."""
    executor_input = {
        "inputs": {
            "parameterValues": {
                "name": "amazon_reviews",
                "settings": '{"cache": true, "training": {"epochs": 2}}',
                "epochs": 7,
            },
            "artifacts": {
                name: {"artifacts": [{"name": name, "uri": str(run / name)}]} for name in INPUTS
            },
        },
        "outputs": {
            "artifacts": {
                name: {
                    "artifacts": [
                        {
                            "name": name,
                            "uri": str(folder / "out" / name),
                            "type": {"schemaTitle": SYSTEM_TYPES[own], "schemaVersion": "0.0.1"},
                        }
                    ]
                }
                for name, own in OUTPUTS.items()
            },
            "outputFile": str(folder / "out" / "executor_output.json"),
        },
    }
    spec = {
        "artifacts": {
            name: {"artifactType": {"instanceSchema": f"title: {title}\ntype: object\n"}}
            for name, title in INPUTS.items()
        },
        "parameters": {
            "name": {"parameterType": "STRING"},
            "settings": {"parameterType": "STRING"},
            "epochs": {"parameterType": "NUMBER_INTEGER"},
        },
    }
    command = [
        *(sys.executable, "-m", "platforms.entrypoint"),
        *("--executor_class_path", "components.run_report.component.Executor"),
        *("--json_serialized_invocation_args", json.dumps(executor_input)),
        *("--json_serialized_inputs_spec_args", json.dumps(spec)),
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads((folder / "out" / "executor_output.json").read_text())
