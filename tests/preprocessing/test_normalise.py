"""Words and n-gram ids, against slow and obvious references."""

import re

import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from preprocessing import normalise

BUCKETS = 2**20
words_of_a_text = st.lists(
    st.text(st.characters(categories=["L"]), min_size=1, max_size=4), max_size=6
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Don't buy: it BROKE!!! (twice)", "don't buy : it broke !!! ( twice )"),
        ("ÜBER café 서울", "über café 서울"),
        ("iPhoneの新型、良い!", "iphone の 新 型 、 良 い !"),
        ("เครื่องดีมาก", "เค รื่ อ ง ดี มา ก"),
        ("good\0 terrible\0\0WASTE \0ÄRGER", "good terrible waste ärger"),
    ],
)
def test_words_are_lower_case_and_punctuation_is_a_word(text, words):
    [found] = normalise.words(tf.constant([text])).to_list()
    assert b" ".join(found).decode() == words


@settings(max_examples=50)
@given(st.lists(st.text(st.characters(codec="ascii")), max_size=4))
def test_words_match_a_plain_reference(texts):
    def reference(text):
        return re.sub(r"[!-&(-/:-@\[-`{-~]+", r" \g<0> ", text.lower()).split()

    # Python's split knows more white space than TensorFlow's.
    texts = [re.sub(r"[\x00-\x1f]", " ", text) for text in texts]
    words = normalise.words(tf.constant(texts, tf.string)).to_list()
    assert [[word.decode() for word in row] for row in words] == [reference(t) for t in texts]


@settings(max_examples=10)
@given(st.lists(words_of_a_text, min_size=1, max_size=4), st.integers(1, 3))
def test_an_ngram_has_the_same_id_wherever_it_stands(rows, longest):
    """The id of every n-gram equals its id in a text that has only this n-gram."""
    tokens = tf.ragged.constant(rows, dtype=tf.string, ragged_rank=1)
    ids = normalise.ngram_ids(tokens, longest, BUCKETS).to_list()
    for row, found in zip(rows, ids, strict=True):
        expected = [
            _last_id(row[start : start + length])
            for length in range(1, longest + 1)
            for start in range(len(row) - length + 1)
        ]
        assert found == expected


def _last_id(words):
    alone = tf.ragged.constant([words], dtype=tf.string, ragged_rank=1)
    return normalise.ngram_ids(alone, len(words), BUCKETS).to_list()[0][-1]


def test_ids_stay_in_their_buckets_and_word_order_matters():
    tokens = tf.ragged.constant([["not", "good"], ["good", "not"]], dtype=tf.string)
    (*ids, one), (*_, other) = normalise.ngram_ids(tokens, 2, 1000).to_list()
    assert all(0 <= id < 1000 for id in [*ids, one])
    assert one != other


@pytest.mark.parametrize(("opening", "number"), [(1, 0), (3, 1), (9, 0)])
def test_the_ngrams_of_an_opening_have_another_id_there(opening, number):
    rows = [["a", "b", "c"], [], ["b"], ["c", "a", "b", "c"]]
    tokens = tf.ragged.constant(rows, dtype=tf.string, ragged_rank=1)
    others = [2] * number
    plain = normalise.ngram_ids(tokens, 2, BUCKETS, others).to_list()
    found = normalise.ngram_ids(tokens, 2, BUCKETS, [*others, opening]).to_list()
    ids_there = {}
    for row, ids, more in zip(rows, plain, found, strict=True):
        [inside] = normalise.ngram_ids(
            tf.ragged.constant([row[:opening]], dtype=tf.string, ragged_rank=1), 2, BUCKETS
        ).to_list()
        added = [id for id in more if id not in ids]
        assert sorted(added + ids) == sorted(more)
        for here, there in zip(inside, added, strict=True):
            assert ids_there.setdefault(here, there) == there


def test_the_graph_of_ngrams_has_few_operations():
    """Transform traces the graph three times, and a server executes it for each request."""

    @tf.function(input_signature=[tf.RaggedTensorSpec([None, None], tf.string)])
    def ids(tokens):
        return normalise.ngram_ids(tokens, 2, BUCKETS, [2, 4, 8])

    assert len(ids.get_concrete_function().graph.get_operations()) < 200
