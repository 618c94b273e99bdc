"""The figures of a report: the counts of the input, explained mistakes, weights of n-grams."""

import numpy as np
import pytest
import tensorflow as tf

from components.run_report.evaluation import read_evaluation
from components.run_report.input_data import read_input
from components.run_report.mistakes import contributions, explain, largest_weights
from preprocessing import features
from preprocessing.fast.ngrams import ngram_ids
from preprocessing.settings import Transform
from serving.predict_text import load_predict_text
from tests.components.run_report.artifacts import HOSTILE, REVIEWS, write_run
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


def weights(model):
    return largest_weights(TEXTS, model)


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
    assert largest_weights([], Model()) == []
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


def test_the_evaluation_and_the_mistakes_are_those_of_the_evaluator(tmp_path):
    run = write_run(tmp_path)
    found = read_evaluation(run.uris["evaluation"])
    assert found.examples == len(REVIEWS)
    assert found.confusion == [[2, 1], [1, 2]]
    assert found.curve[0][:3] == (1.0, 0.0, 0.0)
    assert found.curve[-1] == (0.0, 1.0, 1.0, 0.5)
    assert found.tenths == [
        (0.1, pytest.approx(0.1, abs=1e-4), 2, 1),
        (0.9, pytest.approx(0.9, abs=1e-4), 1, 2),
    ]
    uris = [run.uris[name] for name in ("evaluation", "examples", "model")]
    explained = explain(*uris, with_ngrams=True)
    assert {each.text for each in explained.mistakes} == {f"good {HOSTILE}", REVIEWS[-1][0]}
    assert {each.probability for each in explained.mistakes} == {0.9, 0.1}
    [mistake] = [each for each in explained.mistakes if each.label == 0]
    assert mistake.parts[0].text == "good"
    assert mistake.parts[0].effect > 4
    # The model of this test is no sum over n-grams.
    assert explained.ngrams == []


def test_the_lines_of_each_file_and_the_reasons(tmp_path):
    found = read_input(write_run(tmp_path).uris["rejected"])
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


def test_many_files_are_listed_in_part(tmp_path, monkeypatch):
    monkeypatch.setattr("components.run_report.input_data._FILES_SHOWN", 1)
    found = read_input(write_run(tmp_path).uris["rejected"])
    assert (len(found.files), found.more_files, found.total.read) == (1, 1, 32)
