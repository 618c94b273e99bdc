"""The outcome of a run that pushed a model, for `dataclasses.replace`."""

from components.line_counts import LineCounts
from components.run_report.outcome import Outcome

OUTCOME = Outcome(
    lines=LineCounts(),
    reading=("CSV: label `stars`",),
    accuracy=0.91234,
    auc=0.95,
    constant_answer="always answering positive would give 0.5000",
    baseline="",
    accuracy_change=0.0,
    blessed=True,
    refused="",
    not_checked="",
    pushed_to="/serving/7",
    report="/runs/[1]/report.html",
    unused=("no line of b.csv can be used: bad_label 3; the first: label: x",),
    strategy="OneDeviceStrategy",
    metrics={"accuracy": 0.91234, "AUC": 0.95},
    accuracy_interval=(0.90123, 0.92345),
    thresholds=("accuracy is 0.9123, evaluation.min_accuracy requires 0.85",),
    loss_curve=(0.7, 0.4, 0.3, 0.2, 0.1),
    steps=1200,
)
