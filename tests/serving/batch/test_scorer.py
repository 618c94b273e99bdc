"""The two signatures that score texts, and the choice between them."""

import numpy as np
import pytest
import tensorflow as tf

from preprocessing import normalise
from serving.batch import scorer
from serving.batch.scorer import Scorer
from tests.serving.models import push

pytestmark = pytest.mark.slow

BUCKETS = 1000


class Ngrams(tf.Module):
    """A model whose probability is the fraction of even n-gram ids."""

    def __init__(self, other_hash=0):
        super().__init__()
        self.ngram_settings = tf.Variable([2, BUCKETS], dtype=tf.int64, trainable=False)
        self.other_hash = other_hash

    def _answer(self, rows):
        even = tf.reduce_mean(tf.cast(rows % 2 == 0, tf.float32), axis=1)
        probability = tf.where(tf.math.is_nan(even), 0.0, even)
        return {"probability": probability, "label": tf.cast(probability > 0.5, tf.int64)}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def predict_text(self, texts):
        rows = normalise.ngram_ids(normalise.words(texts), 2, BUCKETS)
        return self._answer(rows.with_values(rows.flat_values + self.other_hash))

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int64)] * 2)
    def predict_ngrams(self, ngrams, row_lengths):
        return self._answer(tf.RaggedTensor.from_row_lengths(ngrams, row_lengths))


def save(model, folder):
    names = ("predict_text", "predict_ngrams")
    signatures = {name: getattr(model, name) for name in names}
    tf.saved_model.save(model, str(folder), signatures=signatures)
    return str(folder)


TEXTS = [f"review {n}: {'good ' * (n % 7)}É{'!' * (n % 3)}".encode() for n in range(500)]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return save(Ngrams(), tmp_path_factory.mktemp("model"))


def test_scores_are_those_of_predict_text_whatever_the_parts(model, monkeypatch):
    scored = Scorer(model)
    assert scored.is_fast
    wanted = scored._by_text(texts=tf.constant(TEXTS))
    for size in (1, 1000, 1 << 20):
        monkeypatch.setattr(scorer, "_BYTES_AT_ONCE", size)
        found = scored.score(TEXTS)
        np.testing.assert_array_equal(found.probability, wanted["probability"])
        np.testing.assert_array_equal(found.label, wanted["label"])
    assert scored.is_fast
    assert len(scored.score([]).label) == 0


def test_a_model_with_other_ngrams_is_read_through_predict_text(tmp_path, caplog):
    scored = Scorer(save(Ngrams(other_hash=1), tmp_path))
    assert not scored.is_fast
    assert "Push a new model" in caplog.text
    wanted = scored._by_text(texts=tf.constant(TEXTS))["probability"]
    np.testing.assert_array_equal(scored.score(TEXTS).probability, wanted)


def test_the_first_reviews_are_compared_too(model, monkeypatch):
    scored = Scorer(model)
    monkeypatch.setattr(scorer, "ngram_ids", lambda *_: (np.zeros(500, int), np.ones(500, int)))
    assert scored.score(TEXTS[:1]).label is not None
    assert not scored.is_fast


def test_a_model_without_the_signature(tmp_path):
    push(tmp_path)
    scored = Scorer(str(tmp_path))
    assert not scored.is_fast
    assert scored.score([b"good", b"bad"]).label.tolist() == [1, 0]
