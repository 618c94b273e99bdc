"""The charts of a report: their points, bars and legends."""

import matplotlib.colors
import numpy as np
import pytest

from components.evaluator.counts import Counts
from components.evaluator.files import CANDIDATE, WHOLE, Results
from components.evaluator.thresholds import Evaluation
from components.run_report import charts
from preprocessing.labels import SENTIMENT, Labels

LABELS = np.array([0, 0, 0, 1, 1, 0])
PREDICTIONS = np.array([0.05, 0.05, 0.55, 0.55, 0.95, 0.95])
COUNTS = Counts.from_predictions(LABELS, PREDICTIONS, SENTIMENT)
RESULTS = Results(SENTIMENT, Evaluation(), {WHOLE: {CANDIDATE: COUNTS}})


@pytest.fixture
def drawn(monkeypatch):
    """The axes of each chart, by its label."""
    found = {}
    monkeypatch.setattr(
        charts, "_svg", lambda figure, label: found.setdefault(label, figure.axes[0]) and ""
    )
    return found


def points(axes, number):
    return np.transpose(axes.lines[number].get_data()).tolist()


def test_the_points_of_an_epoch_are_at_its_end(drawn):
    curve = [
        {"step": step, "loss": 1 / step, "accuracy": step / 10, "learning_rate": 0.5}
        for step in (2, 5, 8, 10)
    ]
    epochs = [{"val_loss": 0.4, "val_accuracy": 0.6}, {"val_loss": 0.3}]
    charts.draw({"curve": curve, "epoch_metrics": epochs}, None)
    loss = drawn["Loss over the steps"]
    assert points(loss, 0) == [[step, 1 / step] for step in (2, 5, 8, 10)]
    assert points(loss, 1) == [[5, 0.4], [10, 0.3]]
    assert [text.get_text() for text in loss.get_legend().texts] == ["train", "eval split"]
    assert points(drawn["Accuracy over the steps"], 1)[0] == [5, 0.6]
    assert [y for _, y in points(drawn["Learning rate over the steps"], 0)] == [0.5] * 4


def test_the_figures_of_the_test_split(drawn):
    charts.draw({}, RESULTS)
    roc = drawn["Receiver operating characteristic"]
    # From the highest threshold to the lowest one; of four negative reviews one is at the top.
    assert points(roc, 1) == [[0, 0], [0.25, 0.5], [0.5, 1], [1, 1], [1, 1]]
    calibration = drawn["Calibration of the predicted probabilities"]
    observed = points(calibration, 1)
    assert [y for _, y in observed] == [0, 0.5, 0.5]
    assert [x for x, _ in observed] == pytest.approx([0.05, 0.55, 0.95], abs=1e-3)


def test_the_bars_have_the_numbers_and_the_colours_of_their_class(drawn):
    charts.draw({}, RESULTS)
    axes = drawn["Number of reviews by predicted probability"]
    names = [text.get_text() for text in axes.get_legend().texts]
    bars = {
        name: ([bar.get_height() for bar in group], group[0].get_facecolor())
        for name, group in zip(names, axes.containers, strict=True)
    }
    colour = matplotlib.colors.to_rgba
    assert bars == {
        "negative": ([2, 1, 1], colour(charts._SECOND)),
        "positive": ([0, 1, 1], colour(charts._FIRST)),
    }


def test_names_of_two_classes_are_shown_as_they_are(drawn):
    labels = Labels(("_no\n$x$", "a long name " * 20))
    charts.draw({}, RESULTS._replace(labels=labels))
    axes = drawn["Number of texts by predicted probability"]
    shown = [text.get_text().strip() for text in axes.get_legend().texts]
    assert shown == [r"_no \$x\$", "a long name a long name a lon…"]
    assert len(axes.get_xlabel()) < 70
