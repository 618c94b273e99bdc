"""The signature `predict_text` by two ways, and the choice between them."""

import numpy as np
import pytest
import tensorflow as tf

from serving.predict_text import call_in_batches, load_predict_text
from serving.rest.model import LoadedModel
from tests.serving.models import BUCKETS, Ngrams, save_ngrams

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
    assert predict.ngram_settings == (2, BUCKETS, (2, 3), ())
    found = predict(TEXTS)
    assert_equal(found, predict._by_text(TEXTS))
    monkeypatch.setattr(predict, "_by_text", None)
    assert_equal(predict(TEXTS), found)


@pytest.mark.parametrize(("openings", "characters"), [((), None), ((2,), ()), ((), (4, 3))])
def test_a_model_has_its_own_openings_and_characters(tmp_path, openings, characters):
    model = Ngrams(openings=openings, characters=characters)
    predict = load_predict_text(save_ngrams(model, tmp_path / "3"))
    assert predict.ngram_settings == (2, BUCKETS, openings, characters or ())
    assert_equal(predict(TEXTS), predict._by_text(TEXTS))


def test_a_model_with_other_ngrams_is_read_through_predict_text(tmp_path, caplog):
    predict = load_predict_text(save_ngrams(Ngrams(other_hash=1), tmp_path / "3"))
    assert predict.ngram_settings is None
    assert "push a new model" in caplog.text
    assert_equal(predict(TEXTS), predict._by_text(TEXTS))


def test_the_memory_of_a_call_is_bounded():
    sizes = []

    def signature(texts):
        sizes.append(len(texts))
        return {"length": tf.strings.length(texts)}

    [found] = call_in_batches(signature, TEXTS * 3, ["length"])
    assert found.tolist() == [len(text) for text in TEXTS * 3]
    assert max(sizes) <= 512
    assert call_in_batches(signature, [], ["length"])[0].tolist() == []
