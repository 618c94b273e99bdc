"""The figures of a comparison, their tests and their intervals."""

import numpy as np
import pytest
from scipy.stats import chi2_contingency, ks_2samp

from preprocessing.labels import SENTIMENT, Labels
from serving.drift import accuracy, domain, shares
from serving.drift.compare import compare
from serving.drift.reference import ScoredReviews

TOPICS = Labels(("billing", "delivery", "refund"))
WORDS = [f"word{n}" for n in range(200)]


def texts(random, number, *, extra=""):
    """Return texts of words that are drawn at random."""
    drawn = random.choice(WORDS, (number, 12))
    return [f"{' '.join(row)} {extra}".strip().encode() for row in drawn]


def reviews(random, number, *, classes=SENTIMENT, sharpness=3.0, extra="", share=0.5):
    """Return reviews with calibrated scores. With a lower sharpness the model is less sure."""
    if classes.is_binary:
        odds = random.normal(np.where(random.random(number) < share, 1.0, -1.0) * sharpness, 2)
        scores = 1 / (1 + np.exp(-odds))
        labels = (random.random(number) < scores).astype(np.int64)
    else:
        logits = sharpness * random.normal(size=(number, classes.number))
        scores = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        drawn = random.random(number)[:, None]
        labels = (np.cumsum(scores, axis=1) < drawn).sum(axis=1).clip(0, classes.number - 1)
    return ScoredReviews(
        scores.astype(np.float32), texts(random, min(number, 150), extra=extra), labels
    )


def without_labels(found):
    return ScoredReviews(found.scores, found.texts, None)


@pytest.mark.parametrize("classes", [SENTIMENT, TOPICS])
def test_reviews_of_the_same_source_raise_no_alarm_and_have_the_same_accuracy(classes):
    random = np.random.default_rng(8)
    old, new = (reviews(random, number, classes=classes) for number in (4000, 1500))
    found = compare(old, new, classes, 0.01)
    assert not found.is_alarm and found.severity == "none"
    figures = {figure.name: figure for figure in found.figures}
    assert list(figures) == ["scores", "words", "unsure", "accuracy", "labels", "estimate"]
    true = np.mean(classes.decide(new.scores) == new.labels)
    assert figures["accuracy"].value == pytest.approx(true)
    low, high = figures["estimate"].interval
    assert low < true < high and high - low < 0.06
    assert "0.5 is chance" in figures["words"].sentence


@pytest.mark.parametrize("classes", [SENTIMENT, TOPICS])
def test_the_estimate_follows_the_accuracy_of_a_model_that_is_less_sure(classes):
    random = np.random.default_rng(2)
    old = reviews(random, 5000, classes=classes)
    new = reviews(random, 3000, classes=classes, sharpness=1.5)
    estimate = accuracy.estimate_accuracy(old.scores, old.labels, new.scores, classes)
    before, now = (np.mean(classes.decide(each.scores) == each.labels) for each in (old, new))
    assert before - now > 0.05
    assert estimate.value == pytest.approx(now, abs=0.04)
    found = compare(old, without_labels(new), classes, 0.01)
    assert found.severity == "high" and "label some hundred" in found.advice
    assert {figure.name for figure in found.figures if figure.is_alarm} == {"scores", "unsure"}


def test_a_model_without_errors_is_estimated_to_make_none():
    scores = np.array([0.1, 0.9] * 300, np.float32)
    found = accuracy.estimate_accuracy(scores, np.array([0, 1] * 300), scores, SENTIMENT)
    assert found == (1.0, (1.0, 1.0))
    unsure = np.array([0.45, 0.6] * 300, np.float32)
    found = accuracy.estimate_accuracy(scores, np.array([0, 1] * 300), unsure, SENTIMENT)
    assert 0.5 < found.value < 0.8


def test_other_words_are_an_alarm_that_names_them():
    random = np.random.default_rng(3)
    old, new = reviews(random, 2000), reviews(random, 500, extra="baby bottle")
    found = compare(old, new, SENTIMENT, 0.01)
    assert [figure.name for figure in found.figures if figure.is_alarm] == ["words"]
    assert found.severity == "low" and found.advice.startswith("no significant drop")
    # "baby", "bottle" and "baby bottle" are in the same texts.
    assert [each.new for each in found.ngrams] == [1.0]
    assert found.ngrams[0].ngram in ("baby", "bottle", "baby bottle")


def test_a_syllable_is_a_word_with_its_vowels_and_tones():
    matrix = domain.ngram_matrix(["ดีมาก iPhoneの新".encode(), "ល្អ!".encode()])
    words = {ngram for ngram in matrix.names if " " not in ngram}
    assert words == {"ดี", "มา", "ก", "iphone", "の", "新", "ល្អ", "!"}


def test_other_shares_of_the_labels_and_wrong_answers_are_alarms():
    random = np.random.default_rng(4)
    old, new = reviews(random, 4000), reviews(random, 1000)
    flipped = ScoredReviews(new.scores, new.texts, np.where(np.arange(1000) < 300, 1, new.labels))
    assert compare(old, flipped, SENTIMENT, 1.0).advice == (
        "the accuracy dropped by no more than evaluation.max_accuracy_drop allows; check the "
        "labels of these reviews, and add them to the next training if they are right"
    )
    found = compare(old, flipped, SENTIMENT, 0.01)
    figures = {figure.name: figure for figure in found.figures}
    assert figures["accuracy"].is_alarm and figures["labels"].is_alarm
    assert not figures["scores"].is_alarm
    assert found.severity == "high" and found.advice == (
        "check the labels of these reviews, and retrain if they are right"
    )


def test_the_classifier_is_that_of_ridge_regressions_without_each_fold():
    random = np.random.default_rng(5)
    matrix = domain.ngram_matrix(texts(random, 40) + texts(random, 30, extra="new"))
    products = domain._features(matrix.counts).astype(np.float64)
    target = (np.arange(70) >= 40) - 3 / 7
    folds = np.array_split(random.permutation(70), 5)
    found = domain._cross_validated(
        products.astype(np.float32), target[:, None].astype(np.float32), folds
    )
    for fold in folds:
        others = np.setdiff1d(np.arange(70), fold)
        weights = np.linalg.solve(products[np.ix_(others, others)] + np.eye(56), target[others])
        wanted = products[np.ix_(fold, others)] @ weights
        np.testing.assert_allclose(found[fold, 0], wanted, atol=1e-4)


def test_the_p_value_of_the_classifier_is_uniform_without_a_change():
    random = np.random.default_rng(6)
    p_values = [
        domain.compare_texts(texts(random, 60), texts(random, 40), seed).p_value
        for seed in range(30)
    ]
    assert 0.35 < np.mean(p_values) < 0.65
    assert np.mean(np.array(p_values) <= 0.2) < 0.4


def test_the_scores_of_each_class_are_tested_with_bonferronis_correction():
    random = np.random.default_rng(7)
    old, new = (random.dirichlet([1, 1, 1], number) for number in (500, 300))
    new[:, [0, 2]] = new[:, :1] * [0.5, 1.5]
    found = shares.score_distance(old, new, TOPICS)
    of_classes = [ks_2samp(old[:, n], new[:, n], method="asymp") for n in range(3)]
    assert found.label == int(np.argmin([each.pvalue for each in of_classes]))
    assert found.p_value == pytest.approx(min(1, 3 * min(each.pvalue for each in of_classes)))
    assert found.interval[0] <= found.value <= found.interval[1]


def test_rare_classes_are_tested_together():
    old, new = np.array([500, 400, 6, 3]), np.array([40, 60, 0, 2])
    joined = chi2_contingency([[500, 400, 9], [40, 60, 2]]).pvalue
    assert shares.label_p_value(old, new) == pytest.approx(joined)
    assert shares.label_p_value(np.array([9, 0]), np.array([5, 0])) == 1
    assert (
        shares.drop_p_value((900, 1000), (80, 100))
        < 0.01
        < shares.drop_p_value((80, 100), (900, 1000))
    )


def test_many_classes_that_are_all_rare_are_tested_in_groups():
    old = np.full(77, 40)
    only_one = np.bincount(np.full(100, 5), minlength=77)
    assert shares.label_p_value(old, only_one) < 1e-20
    random = np.random.default_rng(8)
    p_values = [
        shares.label_p_value(random.multinomial(3000, old / old.sum()), new)
        for new in random.multinomial(100, old / old.sum(), size=400)
    ]
    assert 0.45 < np.mean(p_values) < 0.55
    assert np.mean(np.array(p_values) <= 0.05) < 0.08


def test_the_level_is_that_of_all_tests_together():
    p_values = {"a": 0.012, "b": 0.02, "c": 0.04, "d": 0.5}
    assert shares.alarms(p_values, 0.05) == {"a"}  # 0.02 > 0.05 / 3
    assert shares.alarms({**p_values, "b": 0.016}, 0.05) == {"a", "b"}
    assert shares.alarms({**p_values, "a": 0.013}, 0.05) == frozenset()
