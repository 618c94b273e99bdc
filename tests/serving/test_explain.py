"""The contribution of each word to a prediction."""

import math

import pytest

from serving.explain import MOST_WORDS, explain
from serving.predictor import Prediction

WEIGHTS = {"great": 2.0, "broke": -3.0}


def predict(texts):
    """A logistic regression over words."""
    logits = [sum(WEIGHTS.get(word, 0.0) for word in text.split()) for text in texts]
    chances = [1 / (1 + math.exp(-logit)) for logit in logits]
    return [Prediction(chance, int(chance > 0.5)) for chance in chances]


def test_the_contribution_of_a_word_is_its_weight():
    prediction, words = explain("It is great but broke", predict)
    assert prediction.label == 0
    assert [("It is great but broke"[w.start : w.end], w.contribution) for w in words] == [
        ("It", 0.0),
        ("is", 0.0),
        ("great", pytest.approx(2.0)),
        ("but", 0.0),
        ("broke", pytest.approx(-3.0)),
    ]


def test_a_long_review_is_explained_in_part():
    assert len(explain("word " * 10_000, predict)[1]) == MOST_WORDS


def test_a_certain_prediction_has_finite_contributions():
    prediction, [word] = explain("x", lambda texts: [Prediction(float(bool(t)), 1) for t in texts])
    assert prediction.probability == 1.0
    assert math.isfinite(word.contribution)


def test_an_empty_review_has_no_words():
    assert explain("  ", predict)[1] == []
