"""The figures of a report: intervals, ROC, mistakes, the counts of the input."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from components.run_report import predictions
from components.run_report.evaluation import (
    accuracy_interval,
    auc_interval,
    difference_interval,
)
from components.run_report.input_data import read_input, read_lengths
from components.run_report.page import figure, highlighted
from components.run_report.predictions import Mistake, predict, roc_curve, worst_mistakes
from serving.explain import Part
from tests.components.run_report.artifacts import HOSTILE, REVIEWS, write_run


def test_the_interval_of_an_accuracy_is_wilsons():
    # Newcombe, "Two-sided confidence intervals for the single proportion" (1998): 81 of 263.
    low, high = accuracy_interval(81 / 263, 263)
    assert (low, high) == (pytest.approx(0.2553, abs=1e-4), pytest.approx(0.3662, abs=1e-4))


def test_the_interval_of_a_difference_is_newcombes():
    # The first example of his paper: 56 of 70 and 48 of 80.
    mine, others = accuracy_interval(56 / 70, 70), accuracy_interval(48 / 80, 80)
    low, high = difference_interval(56 / 70, mine, 48 / 80, others)
    assert (low, high) == (pytest.approx(0.0524, abs=1e-4), pytest.approx(0.3339, abs=1e-4))


def test_the_interval_of_an_auc_is_that_of_hanley_and_mcneil():
    # The example of their paper: an AUC of 0.893, 51 positive and 58 negative cases, SE 0.0317.
    low, high = auc_interval(0.893, 109, 51 / 109)
    assert (high - low) / 2 / 1.96 == pytest.approx(0.0317, abs=2e-3)
    assert auc_interval(1.0, 100, 0.5) == (1.0, 1.0)


@given(
    st.lists(
        st.tuples(st.sampled_from([0, 1]), st.sampled_from([0.0, 0.1, 0.5, 0.6, 1.0])), min_size=2
    ).filter(lambda pairs: len({label for label, _ in pairs}) == 2)
)
def test_the_area_under_the_curve_is_that_of_scikit_learn(pairs):
    labels, scores = (np.array(column) for column in zip(*pairs, strict=True))
    points = roc_curve(labels, scores)
    assert points[0][:2] == (0.0, 0.0)
    assert points[-1][:2] == (1.0, 1.0)
    area = np.trapezoid if hasattr(np, "trapezoid") else np.trapz
    found = area([y for _, y, _ in points], [x for x, _, _ in points])
    assert found == pytest.approx(roc_auc_score(labels, scores))


def test_a_long_curve_has_few_points():
    scores = np.linspace(0, 1, 10_000)
    assert len(roc_curve((scores > 0.3).astype(int), scores)) < 500


def test_the_most_confident_mistakes_come_first():
    labels, scores = np.array([1, 0, 1, 0, 1]), np.array([0.4, 0.9, 0.01, 0.2, 0.8])
    assert worst_mistakes(labels, scores) == [2, 1, 0]


def test_the_predictions_of_the_test_split(tmp_path, monkeypatch):
    found = predict(*_uris(write_run(tmp_path)), with_ngrams=True)
    assert found.reviews == len(REVIEWS)
    assert found.positives == 0.5
    assert found.confusion == [[2, 1], [1, 2]]
    assert {mistake.text for mistake in found.mistakes} == {f"good {HOSTILE}", REVIEWS[-1][0]}
    # The model of this test is no sum over n-grams.
    assert found.ngrams == []
    assert sum(each.reviews for each in found.bins) == len(REVIEWS)
    monkeypatch.setattr(predictions, "MOST_REVIEWS", 2)
    assert predict(*_uris(_sources_in(tmp_path)), with_ngrams=False).reviews == 2


def test_no_test_review_gives_no_predictions(tmp_path):
    assert predict(*_uris(write_run(tmp_path, reviews=[])), with_ngrams=False) is None


def test_the_lines_of_each_file_and_the_reasons(tmp_path):
    found = read_input(write_run(tmp_path).rejected)
    first, second = found.files
    assert (first.name, first.read, first.rejected, first.duplicates) == ("a.csv", 18, 2, 0)
    assert (second.name, second.read, second.neutral, second.duplicates) == ("b.csv", 14, 3, 1)
    assert (found.total.read, found.total.examples["train"]) == (32, 16)
    # The columns of a row add up to the lines of the file; lost bytes are no lines.
    for file in (first, second, found.total):
        parts = (file.duplicates, file.neutral, file.over_cap, file.rejected)
        assert sum(parts) + sum(file.examples.values()) == file.read
    assert (found.total.over_cap, found.total.lost_bytes) == (4, 1000)
    assert [(reason.name, reason.lines) for reason in found.reasons] == [
        ("bad_label", 2),
        ("duplicate_across_splits", 1),
    ]
    assert found.reasons[0].samples == ["a.csv:7 no label <b>9</b>", "a.csv:9 no label"]


def test_the_lengths_of_the_test_reviews(tmp_path):
    reviews = [("word " * words, 1) for words in (1, 19, 20, 49, 200, 201)] + [("", 0)]
    assert read_lengths(write_run(tmp_path, reviews=reviews).examples) == {
        "1-19": 3,
        "20-49": 2,
        "50-99": 0,
        "100-199": 0,
        "200+": 2,
    }


def test_many_files_are_listed_in_part(tmp_path, monkeypatch):
    monkeypatch.setattr("components.run_report.input_data._FILES_SHOWN", 1)
    found = read_input(write_run(tmp_path).rejected)
    assert (len(found.files), found.more_files, found.total.read) == (1, 1, 32)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (41816.7, "41,817"),
        (0.8384528, "0.8385"),
        (60.0, "60"),
        (1.9e-9, "1.9e-09"),
        (573.59, "573.6"),
    ],
)
def test_measurements_have_few_digits(value, text):
    assert figure(value) == text


def test_the_effects_of_words_are_relative_to_the_largest():
    mistake = Mistake("", 0, 0.9, [Part("so", -1.0), Part(" "), Part("good", 4.0)])
    assert highlighted(mistake) == [("so", -0.25), (" ", 0.0), ("good", 1.0)]


def _uris(sources):
    return sources.examples, sources.model


def _sources_in(folder):
    from components.run_report.sources import Sources

    return dataclasses.replace(
        Sources("x", "y"), examples=str(folder / "examples"), model=str(folder / "model")
    )
