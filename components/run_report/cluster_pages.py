"""The figures that Kubeflow Pipelines and Vertex AI show on their own pages.

The pages read the metadata of the artifact types `system.Metrics` and
`system.ClassificationMetrics`, in the form of the classes of the same names in kfp.
"""

from __future__ import annotations

import math
from typing import Any

from components.run_report.evaluation import Evaluation

_LABELS = ("negative", "positive")


def metrics(evaluation: Evaluation) -> dict[str, float]:
    """Return the metadata of a `system.Metrics`: name -> value.

    Undefined metrics, such as the precision of a model that predicts no positive, are left out: ML
    Metadata cannot store NaN.
    """
    return {m.name: m.value for m in evaluation.metrics if math.isfinite(m.value)}


def classification(evaluation: Evaluation) -> dict[str, Any]:
    """Return the metadata of a `system.ClassificationMetrics`: ROC and confusion matrix."""
    return {
        "confidenceMetrics": [
            {"confidenceThreshold": threshold, "recall": recall, "falsePositiveRate": rate}
            for rate, recall, threshold in evaluation.roc
        ],
        "confusionMatrix": {
            "annotationSpecs": [{"displayName": label} for label in _LABELS],
            "rows": [{"row": row} for row in evaluation.confusion],
        },
    }
