"""The charts of a report: their points, bars and legends."""

from dataclasses import replace

import matplotlib.colors
import numpy as np
import pytest

from components.evaluator.counts import Counts
from components.evaluator.files import CANDIDATE, WHOLE, Results
from components.evaluator.thresholds import Evaluation
from components.run_report import charts, pictures
from components.run_report.charts import Dot
from components.run_report.drawing import FIRST, SECOND
from core.training_summary import CurvePoint, EpochMetrics
from preprocessing.labels import SENTIMENT, Labels
from tests.components.run_report.artifacts import SUMMARY

LABELS = np.array([0, 0, 0, 1, 1, 0])
PREDICTIONS = np.array([0.05, 0.05, 0.55, 0.55, 0.95, 0.95])
COUNTS = Counts.from_predictions(LABELS, PREDICTIONS, SENTIMENT)
RESULTS = Results(SENTIMENT, Evaluation(), {WHOLE: {CANDIDATE: COUNTS}})


@pytest.fixture
def drawn(monkeypatch):
    """The axes of each chart, by its label."""
    found = {}
    monkeypatch.setattr(
        charts, "to_svg", lambda figure, label: found.setdefault(label, figure.axes[0]) and ""
    )
    return found


def points(axes, number):
    return np.transpose(axes.lines[number].get_data()).tolist()


def test_the_points_of_an_epoch_are_at_its_end(drawn):
    curve = [CurvePoint(step, 3, 1 / step, step / 10, 0.5) for step in (2, 5, 8, 10)]
    epochs = [EpochMetrics(0.5, 0.5, 0.4, 0.6), EpochMetrics(0.4, 0.6, 0.3, 0.7)]
    pictures.draw(replace(SUMMARY, curve=curve, epoch_metrics=epochs), None, [])
    loss = drawn["Loss over the steps"]
    assert points(loss, 0) == [[step, 1 / step] for step in (2, 5, 8, 10)]
    assert points(loss, 1) == [[5, 0.4], [10, 0.3]]
    assert [text.get_text() for text in loss.get_legend().texts] == ["train", "eval split"]
    assert points(drawn["Accuracy over the steps"], 1) == [[5, 0.6], [10, 0.7]]
    assert [y for _, y in points(drawn["Learning rate over the steps"], 0)] == [0.5] * 4


def test_the_figures_of_the_test_split(drawn):
    pictures.draw(None, RESULTS, [])
    roc = drawn["Receiver operating characteristic"]
    # From the highest threshold to the lowest one; of four negative reviews one is at the top.
    assert points(roc, 1) == [[0, 0], [0.25, 0.5], [0.5, 1], [1, 1], [1, 1]]
    calibration = drawn["Calibration of the predicted probabilities"]
    observed = points(calibration, 1)
    assert [y for _, y in observed] == [0, 0.5, 0.5]
    assert [x for x, _ in observed] == pytest.approx([0.05, 0.55, 0.95], abs=1e-3)


def test_the_bars_have_the_numbers_and_the_colours_of_their_class(drawn):
    pictures.draw(None, RESULTS, [])
    axes = drawn["Number of reviews by predicted probability"]
    names = [text.get_text() for text in axes.get_legend().texts]
    bars = {
        name: ([bar.get_height() for bar in group], group[0].get_facecolor())
        for name, group in zip(names, axes.containers, strict=True)
    }
    colour = matplotlib.colors.to_rgba
    assert bars == {
        "negative": ([2, 1, 1], colour(SECOND)),
        "positive": ([0, 1, 1], colour(FIRST)),
    }


def test_names_of_two_classes_are_shown_as_they_are(drawn):
    labels = Labels(("_no\n$x$", "a long name " * 20))
    pictures.draw(None, RESULTS._replace(labels=labels), [])
    axes = drawn["Number of texts by predicted probability"]
    shown = [text.get_text().strip() for text in axes.get_legend().texts]
    assert shown == [r"_no \$x\$", "a long name a long name a lon…"]
    assert len(axes.get_xlabel()) < 70


def test_scores_of_classes_have_their_intervals(drawn):
    picture = next(each for each in pictures.draw(None, RESULTS, []).main if "class" in each.title)
    axes = drawn["Recall and precision of the classes"]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["negative", "positive"]
    # Two intervals and then the points of the recall, from the first class down.
    assert points(axes, 2)[0][0] == pytest.approx(0.5)
    assert points(axes, 2)[1][0] == 1
    assert (
        "finds the negative reviews least reliably: 2 of 4, a recall of 0.50 (" in picture.sentence
    )


def test_the_last_runs_are_in_order_and_rejected_ones_differ(drawn):
    dots = [Dot(0.9, (0.8, 0.95), True), Dot(0.7, None, False), Dot(0.85, (0.8, 0.9), True)]
    picture = pictures.draw(None, None, dots).main[0]
    axes = drawn["Accuracy of the last 3 runs"]
    assert points(axes, 0) == [[1, 0.9], [2, 0.7], [3, 0.85]]
    by_name = {line.get_label(): line.get_xydata().tolist() for line in axes.lines}
    assert by_name["pushed or blessed"] == [[1, 0.9], [3, 0.85]]
    assert by_name["rejected"] == [[2, 0.7]]
    assert picture.sentence.startswith(
        "The newest of 3 runs has the accuracy 0.8500; the best one is run 1 of the picture"
    )


def test_runs_on_spans_have_their_names(drawn):
    days = ["2026-11-01", "2026-11-02", "2026-11-03"]
    dots = [Dot(0.9, (0.8, 0.95), True, days[0]), Dot(0.7, None, False, days[1])]
    picture = pictures.draw(None, None, [*dots, Dot(0.85, None, True, days[2])]).main[0]
    axes = drawn["Accuracy of the last 3 runs"]
    formatted = axes.xaxis.get_major_formatter()
    assert [formatted(place) for place in (0, 1, 2, 3, 4)] == ["", *days, ""]
    assert axes.get_xlabel() == "newest span of the run"
    assert "the best one is that of span 2026-11-01 with 0.9000" in picture.sentence
    assert "alarm" not in {line.get_label() for line in axes.lines}


def test_alarms_of_spans_are_above_their_runs(drawn):
    severities = ["", "none", "high", "low", "high"]
    dots = [
        Dot(0.9, None, True, f"2026-11-0{day}", severity)
        for day, severity in enumerate(severities, 1)
    ]
    picture = pictures.draw(None, None, dots).main[0]
    axes = drawn["Accuracy of the last 5 runs"]
    places = {line.get_label(): line.get_xdata().tolist() for line in axes.lines}
    assert (places["high alarm"], places["low alarm"]) == ([3, 5], [4])
    assert "Alarms: 3, the last one in span 2026-11-05." in picture.sentence
    assert picture.sentence.split("Runs with")[0].count("2026-11-05") == 1


@pytest.mark.parametrize(
    ("losses", "sentence"),
    [
        ([0.5], "After the only epoch the loss of the eval split is 0.5000."),
        ([0.5, 0.4], "still fell in the last of 2 epochs, from 0.5000 to 0.4000; more epochs may"),
        ([0.5, 0.4, 0.45], "was lowest after epoch 2 of 3 (0.4000) and is 0.4500 at the end"),
        ([0.5, 0.401, 0.4], "hardly changed after epoch 2 of 3, and is 0.4000 at the end"),
    ],
)
def test_the_sentence_of_the_training_says_whether_more_epochs_help(drawn, losses, sentence):
    epochs = [EpochMetrics(0.5, 0.5, loss, 0.5) for loss in losses]
    [training] = pictures.draw(replace(SUMMARY, epoch_metrics=epochs), None, []).main
    assert sentence in training.sentence


def test_the_sentence_of_a_training_that_ended_early_names_the_epoch_of_the_model(drawn):
    epochs = [EpochMetrics(0.5, 0.5, loss, 0.5) for loss in (0.5, 0.4, 0.45)]
    summary = replace(SUMMARY, epoch_metrics=epochs, metrics=epochs[1])
    [training] = pictures.draw(summary, None, []).main
    assert training.sentence == (
        "The loss of the eval split was lowest after epoch 2 of 3, with 0.4000. The model has the "
        "weights of that epoch."
    )
