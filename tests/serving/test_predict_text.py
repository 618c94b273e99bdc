"""The signature `predict_text` by two ways, and the choice between them."""

import numpy as np
import pytest

from serving import predict_text
from serving.predict_text import load_predict_text
from serving.rest.model import LoadedModel
from tests.serving.models import Ngrams, push, save_ngrams

pytestmark = pytest.mark.slow

TEXTS = [f"review {n}: {'good ' * (n % 7)}É{'!' * (n % 3)}".encode() for n in range(500)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save_ngrams(Ngrams(), tmp_path_factory.mktemp("models") / "3")


@pytest.fixture(params=["eager", "session"])
def load(request):
    """The function of a model as batches have it, and as the server has it."""
    if request.param == "eager":
        return load_predict_text
    return lambda folder: LoadedModel(folder)._functions["predict_text"]


def assert_equal(found, wanted):
    assert found.keys() == wanted.keys() == {"probability", "label"}
    for name, values in wanted.items():
        np.testing.assert_array_equal(found[name], values)


def test_both_ways_have_the_same_answer(load, folder, monkeypatch):
    predict = load(folder)
    assert predict.is_fast
    found = predict(TEXTS)
    assert predict.is_fast
    assert_equal(found, predict._by_text(TEXTS))
    monkeypatch.setattr(predict, "_by_text", None)
    assert_equal(predict(TEXTS), found)


def test_a_model_of_an_earlier_version_has_no_openings(tmp_path):
    predict = load_predict_text(save_ngrams(Ngrams(openings=()), tmp_path / "3"))
    assert predict.ngram_settings[2] == ()
    assert_equal(predict(TEXTS), predict._by_text(TEXTS))
    assert predict.is_fast


def test_a_model_with_other_ngrams_is_read_through_predict_text(load, tmp_path, caplog):
    predict = load(save_ngrams(Ngrams(other_hash=1), tmp_path / "3"))
    assert not predict.is_fast
    assert "Push a new model" in caplog.text
    assert_equal(predict(TEXTS), predict._by_text(TEXTS))


def test_the_first_reviews_are_compared_too(folder, monkeypatch):
    predict = load_predict_text(folder)
    wrong = predict_text.NgramIds(np.zeros(1, int), np.ones(1, int))
    monkeypatch.setattr(predict_text, "ngram_ids", lambda *_: wrong)
    assert_equal(predict(TEXTS[:1]), predict._by_text(TEXTS[:1]))
    assert not predict.is_fast


def test_a_model_without_the_signature(load, tmp_path):
    push(tmp_path / "3")
    predict = load(str(tmp_path / "3"))
    assert predict([b"good", b"bad"])["label"].tolist() == [1, 0]


def test_long_reviews_are_predicted_in_several_calls(folder, monkeypatch):
    predict = load_predict_text(folder)
    whole, calls, by_ngrams = predict(TEXTS), [], predict_text.ngram_ids
    monkeypatch.setattr(
        predict_text, "ngram_ids", lambda texts, *_: calls.append(texts) or by_ngrams(texts, *_)
    )
    for size in (1, 1000):
        calls.clear()
        monkeypatch.setattr(predict_text, "_MAX_BYTES", size)
        assert_equal(predict(TEXTS), whole)
        assert [text for part in calls for text in part] == TEXTS
        assert all(len(texts) == 1 or sum(map(len, texts)) <= size for texts in calls)
