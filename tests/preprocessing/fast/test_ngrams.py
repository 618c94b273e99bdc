"""N-gram ids of the compiled loops are those of the TensorFlow ops, bit for bit."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import example, given, settings
from hypothesis import strategies as st

from preprocessing import features, normalise
from preprocessing.fast import ngrams

TEXT = (
    st.text(max_size=60)
    | st.text(st.characters(codec="ascii"), max_size=200)
    | st.lists(st.integers(0, 80).map(lambda length: ("abcdefgh" * 10)[:length])).map(" ".join)
    | st.lists(
        st.tuples(st.sampled_from("aZ9'é!-_ \t\n\v\f\r\x1c\x85\xa0İΣς"), st.integers(0, 70))
    ).map(lambda runs: "".join(char * count for char, count in runs))
    | st.text(st.sampled_from("aZ !。日本のカเครื่องລາວភាសាខ្មែរမြန်မာབོད་𠀋"), max_size=30)
)


def _encoded(text):
    # tf.constant drops NULs at the end of a text.
    return text.rstrip("\0").encode()


def _without_nuls(text):
    return text.replace(b"\0", b"")


def expected(texts, longest, buckets, openings, characters):
    words = normalise.words(tf.constant(texts, tf.string))
    return normalise.ngram_ids(words, longest, buckets, openings, characters)


@pytest.mark.slow
@pytest.mark.both_stacks
@settings(max_examples=60)
@given(
    texts=st.lists(TEXT.map(_encoded) | st.binary(max_size=40).map(_without_nuls), max_size=6),
    longest=st.integers(1, 3),
    buckets=st.sampled_from([2, 1000, 2**20, 2**30]),
    openings=st.lists(st.sampled_from([1, 2, 3, 8]), max_size=3),
    characters=st.lists(st.integers(2, 8), max_size=3),
)
@example(texts=[], longest=2, buckets=1000, openings=[], characters=[3])
@example(texts=[b"Good\0 bad"], longest=2, buckets=1000, openings=[1], characters=[3])
@example(
    texts=["Größe".encode(), b"", b"a"],
    longest=1,
    buckets=9,
    openings=[],
    characters=[4, 3],
)
def test_ids_equal_those_of_tensorflow(texts, longest, buckets, openings, characters):
    found = ngrams.ngram_ids(ngrams.split_words(texts), longest, buckets, openings, characters)
    wanted = expected(texts, longest, buckets, openings, characters)
    np.testing.assert_array_equal(found.ids, wanted.flat_values)
    np.testing.assert_array_equal(found.row_lengths, wanted.row_lengths())
    assert found.ids.dtype == found.row_lengths.dtype == np.int64


def test_an_ngram_of_characters_is_a_part_of_a_word():
    """Each n-gram has an id of its own: so the ids tell which n-grams words have in common."""

    def of_characters(text):
        found = ngrams.ngram_ids(
            ngrams.split_words([text.encode()]), 1, 2**30, [], [3, 4]
        ).ids.tolist()
        return found[len(text.split()) :]

    assert len(of_characters("card")) == 4 + 3  # <ca car ard rd>, <car card ard>
    assert len(set(of_characters("card")) & set(of_characters("cards"))) == 3 + 2
    assert set(of_characters("top card")) == set(of_characters("top")) | set(of_characters("card"))
    assert len(set(of_characters("größe")) & set(of_characters("größer"))) == 4 + 3
    assert not set(of_characters("ab")) & set(of_characters("ba"))


def test_words_of_every_length_have_the_hash_of_tensorflow():
    texts = [bytes(97 + (7 * n + length) % 26 for n in range(length)) for length in range(1, 400)]
    found = ngrams.ngram_ids(ngrams.split_words(texts), 1, 2**62)
    np.testing.assert_array_equal(found.ids, tf.strings.to_hash_bucket_fast(texts, 2**62))


def test_the_length_bucket_is_that_of_the_number_of_words():
    texts = [b"word " * words for words in range(300)]
    limits = {20: "1-19", 50: "20-49", 100: "50-99", 200: "100-199", 300: "200+"}
    wanted = [next(name for limit, name in limits.items() if n < limit) for n in range(300)]
    assert [
        features.LENGTH_BUCKETS[index] for index in ngrams.length_buckets(ngrams.split_words(texts))
    ] == wanted
