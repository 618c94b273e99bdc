"""The artifacts of a small run, for tests of its report."""

import json
import math

import numpy as np

from components.evaluator import files
from components.evaluator.counts import Counts
from components.evaluator.files import (
    BASELINE,
    CANDIDATE,
    WHOLE,
    Changed,
    OtherModel,
    Results,
    WrongAnswer,
)
from components.evaluator.thresholds import Evaluation as EvaluationSettings
from components.run_report.changes import Changes, Difference, MetricChange
from components.run_report.history import Run, Step
from components.run_report.mistakes import ExplainedMistake
from components.serving_check.results import CheckResults, GoldenMistake, Result
from core.training_summary import TrainingSummary
from preprocessing.labels import SENTIMENT, Labels, write_labels
from serving.drift.compare import Comparison, Figure
from serving.drift.domain import NgramShare
from serving.explain import Part
from tests.serving.models import push

HOSTILE = '<script>document.title = "owned"</script><img src=x onerror="alert(1)"> & "quotes"'
"""A review that would run code, if a page contained it as markup."""
REVIEWS = [
    ("a good phone", 1),
    ("good value, good sound", 1),
    ("broke after a day", 0),
    ("no use", 0),
    (f"good {HOSTILE}", 0),
    ("it does what it should", 1),
]
METRICS = {"loss": 0.4, "accuracy": 0.8, "val_loss": 0.5, "val_accuracy": 0.7}
TRAINING = {
    "strategy_reason": "auto: one device",
    "model": "ngram_linear",
    "hyperparameters": {"scale_floor": 0.3, "compressed": False},
    "learning_rate": 0.0123456,
    "strategy": "OneDeviceStrategy",
    "processes": 1,
    "devices": ["GPU:0", "GPU:1"],
    "replicas": 2,
    "batch_size_per_replica": 2,
    "examples": 16,
    "epochs": 2,
    "steps_per_epoch": 4,
    "prepare_seconds": 1.5,
    "seconds_per_epoch": [4.0, 2.0],
    "steps": 8,
    "step_seconds": 0.75,
    "examples_per_second": 1234.5,
    "seconds": 7.5,
    "cpus": 2,
    "cpu_utilisation": 0.5,
    "peak_rss_bytes": 100 << 20,
    **METRICS,
    "epoch_metrics": [METRICS] * 2,
    "curve": [
        {"step": n, "steps": 1, "loss": 1 / n, "accuracy": 1 - 1 / n, "learning_rate": 0.1}
        for n in range(1, 9)
    ],
}
"""The content of training.json."""
SUMMARY = TrainingSummary.from_json(TRAINING)
COUNTS = [
    {"file": "/data/a.csv", "examples/train": 10, "examples/test": 6, "rejected/bad_label": 2},
    {
        "file": "/data/b.csv",
        "examples/train": 6,
        "neutral": 3,
        "over_max_examples": 4,
        "lost_bytes": 1000,
        "rejected/duplicate_across_splits": 1,
    },
]
LINES = [
    {"file": "/data/a.csv", "position": 7, "reason": "bad_label", "detail": "no label <b>9</b>"},
    {"file": "/data/a.csv", "position": 9, "reason": "bad_label", "detail": "no label"},
]


def write_run(folder, reviews=REVIEWS):
    """Write the artifacts below `folder`; return the Run."""
    for name in ("rejected", "model_run", "examples"):
        (folder / name).mkdir(parents=True)
    _write_lines(folder / "rejected" / "files.jsonl", COUNTS)
    _write_lines(folder / "rejected" / "lines-00000-of-00001.jsonl", LINES)
    (folder / "model_run" / "training.json").write_text(json.dumps(TRAINING))
    push(folder / "model" / "Format-Serving")
    write_labels(str(folder / "examples"), SENTIMENT)
    _write_evaluation(folder / "evaluation", reviews)
    return Run(
        name="amazon_reviews",
        id="2026-11-22T10:00:00.000001",
        started=1_795_000_000.0,
        settings={"cache": True, "training": {"model": "ngram_linear"}},
        changed=["training.model"],
        versions={"python": "3.10.13", "tfx": "1.16.0"},
        steps=[Step("ReviewExampleGen", "cached", 0.0, 0.1), Step("Trainer", "done", 0.2, 3.5)],
        uris={
            name: str(folder / name)
            for name in ("rejected", "examples", "model", "model_run", "evaluation")
        },
        blessed=True,
        pushed_to="/models/1",
    )


def counted(*groups):
    """Return Counts of groups of (label, prediction, number of reviews)."""
    labels, predictions, numbers = zip(*groups, strict=True)
    return Counts.from_predictions(
        np.repeat(labels, numbers), np.repeat(predictions, numbers), SENTIMENT
    )


EVALUATION = Results(
    SENTIMENT,
    EvaluationSettings(min_accuracy=0.95, max_accuracy_drop=0.1),
    {
        ("length_bucket", "120-"): {CANDIDATE: counted((1, 0.9, 950))},
        ("length_bucket", "20-49"): {CANDIDATE: counted((1, 0.9, 35), (1, 0.1, 15))},
        WHOLE: {
            CANDIDATE: counted(
                *((0, 0.1, 438), (0, 0.4, 12), (0, 0.6, 8), (0, 0.9, 42)),
                *((1, 0.1, 32), (1, 0.4, 8), (1, 0.6, 12), (1, 0.9, 448)),
            ),
            BASELINE: counted((0, 0.1, 425), (0, 0.9, 75), (1, 0.1, 75), (1, 0.9, 425)),
        },
    },
)
SLOW = Result(
    "p99_ms",
    310.4,
    250,
    "ms",
    "the p99 latency of single requests is 310 ms, serving_check.max_p99_ms allows 250",
)
CHECK = CheckResults(
    [Result("process", "finished"), SLOW, Result("golden_positive", 0.975, 0.6)],
    [GoldenMistake("It <b>lasts</b>", "positive", "negative", 0.3127)],
    "swapped <b>labels</b> were not checked",
)


CHANGES = Changes(
    before="version 7",
    after="this model",
    settings=[Difference("training.epochs", "2", "3")],
    code=[Difference("tfx", "1.16.0", "1.21.0")],
    metrics=[MetricChange("accuracy", 0.85, 0.91), MetricChange("AUC", math.nan, 0.95)],
    same_reviews=True,
    answers=Changed(2, 62, [WrongAnswer("it <b>was</b> fine", 1, 0, 0.1)]),
    labels=SENTIMENT,
)


DRIFT = Comparison(
    1500,
    1480,
    (
        Figure("words", 0.66, (0.64, 0.68), None, 0.002, "a classifier of <b>words</b>", True),
        Figure("accuracy", 0.78, (0.76, 0.8), 0.91, 2e-9, "the accuracy is 0.7800", True),
        Figure("estimate", 0.88, (0.86, 0.9), 0.91, None, "the accuracy is estimated"),
    ),
    (NgramShare("the <kettle>", 0.002, 0.124),),
    "high",
    "retrain with these reviews",
)


def of_topics(content, names):
    """Return the content of a report on classes with these names, the last of which has no text.

    Half of the texts of each class are answered with the next one.
    """
    labels = Labels(tuple(names))
    label = np.repeat(np.arange(labels.number - 1), 4)
    answers = np.where(np.arange(len(label)) % 4 < 2, label, (label + 1) % (labels.number - 1))
    scores = np.full((len(label), labels.number), 0.1 / (labels.number - 1))
    scores[np.arange(len(label)), answers] = 0.9
    counts = Counts.from_predictions(label, scores, labels)
    other = OtherModel("version 7", ("negative", "positive"))
    settings = EvaluationSettings(min_accuracy=0.3)
    evaluation = Results(labels, settings, {WHOLE: {CANDIDATE: counts}}, other)
    mistake = ExplainedMistake("lost", 0, 1, 0.9, [Part("lost", 2.0)])
    return content._replace(
        labels=labels,
        balance={"train": dict.fromkeys(names, 1 / labels.number)},
        evaluation=evaluation,
        mistakes=[mistake],
        check=CheckResults([SLOW], [], "none were checked"),
        confusion_texts={(0, 1): [WrongAnswer(f"where is {HOSTILE}", 0, 1, 0.9)]},
    )


def with_every_part(content, size=1):
    """Return the content of a report with all parts; `size` multiplies the lengths of its texts."""
    word = "a<&'\"" * size
    # Only the first hundred words of a review have an effect.
    more = [Part(" "), Part("more", 1.0)] * (98 if size > 1 else 0)
    found = [Part("fine", 2.0), Part(f" {word} "), Part("dull", -1.0), *more]
    mistake = ExplainedMistake("".join(part.text for part in found), 0, 1, 0.987, found)
    return content._replace(
        labels=SENTIMENT,
        balance={"train": {"negative": 0.4, "positive": 0.6}},
        anomalies=["train: label: Unexpected values"],
        evaluation=EVALUATION,
        check=CHECK,
        mistakes=[mistake] * 20,
        changes=CHANGES,
        drift=DRIFT,
    )


def _write_evaluation(folder, reviews):
    """Write the evaluation of the model of `write_run`, as the Evaluator does."""
    labels = np.array([label for _, label in reviews], np.int64)
    predictions = np.array([0.9 if "good" in text else 0.1 for text, _ in reviews])
    counts = {CANDIDATE: Counts.from_predictions(labels, predictions, SENTIMENT)}
    slices = {WHOLE: counts, ("length_bucket", "1-19"): counts}
    files.write(str(folder), Results(SENTIMENT, EvaluationSettings(), slices))
    mistakes = [
        {"text": text, "label": label, "probability": probability}
        for (text, label), probability in zip(reviews, predictions.tolist(), strict=True)
        if (probability > 0.5) != label
    ]
    # As an early version wrote it, without the answers.
    (folder / files.MISTAKES_FILE).write_text(json.dumps(mistakes))


def _write_lines(path, lines):
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
