"""The largest weights of a model that sums the weights of n-grams."""

import numpy as np
import pytest
import tensorflow as tf

from components.run_report.weights import contributions, largest_weights
from preprocessing import features
from preprocessing.fast.ngrams import ngram_ids
from preprocessing.settings import Transform
from serving.predict_text import load_predict_text
from tests.serving.models import push
from trainer_module.models import ngram_linear

TEXTS = [b"good phone", b"not good", b"Good! not bad", b"bad bad phone", b"neither nor at all"]
WEIGHTS = {b"good": 0.2, b"bad": -0.3, b"not": -0.025, b"not bad": 0.4}


class Model:
    """A PredictText of a `ngram_linear` with known weights."""

    is_fast = True

    def __init__(self, longest=2):
        transform = Transform(ngrams=longest, openings=[3])
        self.ngram_settings = (longest, transform.ngram_buckets, transform.openings)
        self._model = ngram_linear.build(ngram_linear.Hyperparameters(length_power=0.5), transform)
        bag = self._model.get_layer("bag")
        table = np.zeros(transform.ngram_buckets, np.float32)
        for gram, weight in WEIGHTS.items():
            table[ngram_ids([gram], longest, len(table)).ids[-1]] = weight
            # A weight in the opening is no weight of the word.
            table[ngram_ids([gram], longest, len(table), [3]).ids[0]] = 5.0
        # The reviews without any of these words have the probability 0.5.
        bag.table.assign(table)

    def from_ngrams(self, ngrams):
        rows = tf.RaggedTensor.from_row_lengths(*ngrams)
        return {"probability": tf.sigmoid(self._model({features.NGRAMS: rows}))[:, 0].numpy()}


def weights(model, probabilities=(0.9, 0.8, 0.9, 0.1, 0.5)):
    return largest_weights(TEXTS, np.array(probabilities), model)


def test_the_weights_are_those_of_the_model_times_the_factor_of_the_undecided_review():
    found = weights(Model())
    # Four words have 4 + 3 n-grams, and the three of the opening 3 + 2 more. One is added.
    factor = (256 / (7 + 5 + 1)) ** 0.5
    assert dict(found) | {name.decode(): weight * factor for name, weight in WEIGHTS.items()} == (
        pytest.approx(dict(found), abs=1e-3)
    )
    assert found[0][0] == "bad"
    assert [name for name, _ in found][-2:] == ["good", "not bad"]


def test_a_model_of_single_words_has_no_pairs():
    assert {" " in name for name, _ in weights(Model(longest=1))} == {False}


def test_a_model_without_the_signature_has_no_weights(tmp_path):
    push(tmp_path / "3")
    assert weights(load_predict_text(str(tmp_path / "3"))) == []
    assert contributions(TEXTS[0], load_predict_text(str(tmp_path / "3"))) == []


def test_a_contribution_is_the_logit_with_the_n_gram_minus_the_logit_without_it():
    # Five words have 5 + 4 n-grams, and the three of the opening 3 + 2 more. One is left out.
    whole, rest = ((256 / count) ** 0.5 for count in (14, 13))
    found = dict(contributions(b"The phone is NOT good", Model()))
    assert len(found) == 5
    assert found["good"] == pytest.approx(0.175 * whole + 0.025 * rest, abs=1e-3)
    assert found["not"] == pytest.approx(0.175 * whole - 0.2 * rest, abs=1e-3)
    assert next(iter(found)) == "good"


def test_an_n_gram_is_left_out_wherever_it_occurs():
    # In the opening "bad" has the weight 5, which alone decides the review.
    [(gram, effect), *_] = contributions(b"bad phone", Model())
    assert gram == "bad"
    assert effect > 15
    assert contributions(b"", Model()) == []
