"""Words and n-grams of texts, computed by the ops that Transform, training and serving share."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf

from preprocessing.scripts import SYLLABLE

_PUNCTUATION = r"[!-&(-/:-@\[-`{-~]+"
"""A run of ASCII punctuation, except the apostrophe, which is a part of words such as "don't"."""
PUNCTUATION_BYTES = re.sub(rb"[\w'\s]", b"", bytes(range(33, 127))) + b"_"
"""The bytes of ASCII punctuation, except the apostrophe, for `preprocessing.fast.ngrams`."""


def words(texts: tf.Tensor) -> tf.RaggedTensor:
    """Return the lower-cased words of each text; a run of punctuation is a word of its own.

    Each syllable of a writing system without blanks is a word too, see `preprocessing.scripts`.
    A NUL separates words, as a space does.

    Args:
      texts: strings in UTF-8, shape [batch].

    Returns:
      Strings, shape [batch, (words)].
    """
    # tf.strings.lower drops what follows a NUL.
    lowered = tf.strings.lower(tf.strings.regex_replace(texts, r"\x00", " "), encoding="utf-8")
    return tf.strings.split(
        tf.strings.regex_replace(lowered, f"{_PUNCTUATION}|{SYLLABLE}", r" \0 ")
    )


def separate_syllables(texts: tf.Tensor) -> tf.Tensor:
    """Return the texts with spaces around each syllable that is a word.

    Args:
      texts: strings in UTF-8, shape [batch].
    """
    return tf.strings.regex_replace(texts, SYLLABLE, r" \0 ")


def ngram_ids(
    tokens: tf.RaggedTensor,
    longest: int,
    buckets: int,
    openings: Sequence[int] = (),
    characters: Sequence[int] = (),
) -> tf.RaggedTensor:
    """Return the hashed ids of all n-grams of 1 to `longest` words, and of n-grams of characters.

    The hash of an n-gram is computed from the hashes of its words (a multiplicative hash, as in
    fastText), without joining strings. An opening is the beginning of a review. The id of an n-gram
    differs between the openings and the whole text, because a title predicts the sentiment better
    than the text below it.

    An n-gram of characters is a part of one word, which has a mark before its first and after its
    last character, as in fastText. So the words of a misspelled or inflected word have most of
    their n-grams in common.

    Args:
      tokens: strings, shape [batch, (words)].
      longest: length of the longest n-gram, in words.
      buckets: number of ids.
      openings: lengths of the openings, in words.
      characters: lengths of the n-grams of characters, the two marks included.

    Returns:
      int64 ids in [0, buckets), shape [batch, (n-grams)]. Each row begins with the n-grams of each
      opening, followed by the n-grams of the whole text and by those of each length of characters.
      In each part of words, shorter n-grams precede longer ones.
    """
    ids = _of_words(tokens, longest, buckets, openings)
    if characters:
        return tf.concat([ids, *_of_characters(tokens, characters, buckets)], axis=1)
    return ids


def opening_mark(number: int) -> int:
    """Return the number below 2^63 that is added to the hashes of the words in an opening.

    Args:
      number: the number of the opening, from 0.
    """
    return (number + 1) * _OPENING % 2**63


class _Runs(NamedTuple):
    """Runs of words: each opening of each text, and the whole texts last.

    Attributes:
      hashes: the hashes of the words of all runs, one run after the other, int64 [words].
      starts: the index in `hashes` of the first word of each run, int64 [batch, runs].
      lengths: the number of words of each run, int64 [batch, runs].
    """

    hashes: tf.Tensor
    starts: tf.Tensor
    lengths: tf.Tensor


def _hashed_runs(tokens: tf.RaggedTensor, openings: Sequence[int]) -> _Runs:
    """Return the words whose n-grams are counted; see `ngram_ids`."""
    hashes = tf.strings.to_hash_bucket_fast(tokens.flat_values, WORD_HASHES)
    text_starts = tokens.row_starts()
    text_lengths = tokens.row_lengths()
    hashes_of_runs, starts, lengths = [], [], []
    before = tf.constant(0, tf.int64)
    for number, opening in enumerate(openings):
        in_opening = tf.minimum(text_lengths, opening)
        places = tf.ragged.range(text_starts, text_starts + in_opening)
        hashes_of_runs.append(tf.gather(hashes, places.flat_values) + opening_mark(number))
        starts.append(before + places.row_starts())
        lengths.append(in_opening)
        before += tf.size(places.flat_values, tf.int64)
    hashes_of_runs.append(hashes)
    starts.append(before + text_starts)
    lengths.append(text_lengths)
    return _Runs(
        tf.concat(hashes_of_runs, axis=0), tf.stack(starts, axis=1), tf.stack(lengths, axis=1)
    )


def _of_words(
    tokens: tf.RaggedTensor, longest: int, buckets: int, openings: Sequence[int]
) -> tf.RaggedTensor:
    """Return the ids of the n-grams of words, int64 [batch, (n-grams)]; see `ngram_ids`.

    The neighbours in one vector of all words are combined, also those of two texts. One `tf.gather`
    then takes the n-grams inside of each run, in their order. Operations for each opening and each
    length of n-grams would triple the number of operations of the graph.
    """
    runs = _hashed_runs(tokens, openings)
    grams = [runs.hashes]
    for length in range(2, longest + 1):
        grams.append(grams[-1][:-1] * MULTIPLIER + runs.hashes[length - 1 :])
    before_length = tf.cumsum([tf.size(each, tf.int64) for each in grams], exclusive=True)
    # The n-grams of each length in each run, int64 [batch, runs, lengths].
    starts = runs.starts[:, :, None] + before_length
    numbers = tf.maximum(runs.lengths[:, :, None] - tf.range(longest, dtype=tf.int64), 0)
    starts = tf.reshape(starts, [-1])
    numbers = tf.reshape(numbers, [-1])
    places = tf.ragged.range(starts, starts + numbers)
    ids = _in_buckets(tf.gather(tf.concat(grams, axis=0), places.flat_values), buckets)
    rows = places.row_splits[:: (len(openings) + 1) * longest]
    return tf.RaggedTensor.from_row_splits(ids, rows, validate=False)


def _of_characters(
    tokens: tf.RaggedTensor, lengths: Sequence[int], buckets: int
) -> list[tf.RaggedTensor]:
    """Return the ids of the n-grams of characters of each of `lengths`, by text."""
    decoded = tf.cast(tf.strings.unicode_decode(tokens.flat_values, "UTF-8"), tf.int64)
    mark = tf.ones([decoded.nrows(), 1], tf.int64)
    marked = tf.concat([mark * WORD_START, decoded, mark * WORD_END], axis=1)
    by_length = _combinations(marked, max(lengths))
    texts = tokens.value_rowids()
    found = []
    for length in lengths:
        grams = by_length[length - 1]
        mixed = grams.flat_values * CHARACTER_MULTIPLIER
        mixed = tf.bitwise.bitwise_xor(mixed, tf.bitwise.right_shift(mixed, HALF))
        ids = _in_buckets(mixed, buckets)
        row_ids = tf.gather(texts, grams.value_rowids())
        found.append(_ragged(ids, row_ids, tokens.nrows()))
    return found


def _combinations(values: tf.RaggedTensor, longest: int) -> list[tf.RaggedTensor]:
    """Return the combinations of 1 to `longest` neighbours in each row.

    Args:
      values: int64, shape [rows, (values)].
      longest: the greatest number of neighbours.
    """
    row_ids = values.value_rowids()
    single = grams = values.flat_values
    found = [values]
    for length in range(2, longest + 1):
        # The slices keep the positions at which an n-gram of this length can start. `inside` then
        # keeps the n-grams that do not extend into the next row.
        grams = grams[:-1] * MULTIPLIER + single[length - 1 :]
        inside = tf.where(tf.equal(row_ids[: -(length - 1)], row_ids[length - 1 :]))[:, 0]
        kept = tf.gather(grams, inside), tf.gather(row_ids, inside)
        found.append(_ragged(*kept, values.nrows()))
    return found


def _in_buckets(values: tf.Tensor, buckets: int) -> tf.Tensor:
    """Return the remainders of a division by the number of ids, int64 in [0, buckets)."""
    # A remainder takes several times as long as a mask; most numbers of buckets are powers of two.
    if buckets & (buckets - 1):
        return tf.math.floormod(values, buckets)
    return tf.bitwise.bitwise_and(values, tf.constant(buckets - 1, tf.int64))


def _ragged(values: tf.Tensor, row_ids: tf.Tensor, rows: tf.Tensor) -> tf.RaggedTensor:
    # The arguments are right by construction. The checks of TensorFlow would double the number of
    # operations of the graph, and the seconds to trace it.
    return tf.RaggedTensor.from_value_rowids(values, row_ids, rows, validate=False)


WORD_HASHES = 2**62
"""The number of different hashes of words."""
MULTIPLIER = 116049371
"""The prime by which fastText combines the hashes of words; int64 products wrap around."""
_OPENING = 0x2545F4914F6CDD1D
"""An arbitrary odd number with many bits."""
CHARACTER_MULTIPLIER = 0x1B03738712FAD5C9
"""An arbitrary odd number with many bits. The combinations of characters are multiplied by it, and
the upper HALF of the bits of the product is added to the lower one, because the code points of
usual characters differ only in their lowest bits."""
HALF = 32
WORD_START, WORD_END = 0x110000, 0x110001
"""The marks before and after a word: the first numbers that are no code points of Unicode."""
