"""Words and n-grams of texts, computed by the ops that Transform, training and serving share."""

from __future__ import annotations

import re
from collections.abc import Sequence

import tensorflow as tf

_PUNCTUATION = r"[!-&(-/:-@\[-`{-~]+"
"""A run of ASCII punctuation, except the apostrophe, which is a part of words such as "don't"."""
PUNCTUATION_BYTES = re.sub(rb"[\w'\s]", b"", bytes(range(33, 127))) + b"_"
"""The bytes of ASCII punctuation, except the apostrophe, for `preprocessing.fast.ngrams`."""


def words(texts: tf.Tensor) -> tf.RaggedTensor:
    """Return the lower-cased words of each text; a run of punctuation is a word of its own.

    A NUL separates words, as a space does.

    Args:
      texts: strings in UTF-8, shape [batch].

    Returns:
      Strings, shape [batch, (words)].
    """
    # tf.strings.lower drops what follows a NUL.
    lowered = tf.strings.lower(tf.strings.regex_replace(texts, r"\x00", " "), encoding="utf-8")
    return tf.strings.split(tf.strings.regex_replace(lowered, _PUNCTUATION, r" \0 "))


def ngram_ids(
    tokens: tf.RaggedTensor, longest: int, buckets: int, openings: Sequence[int] = ()
) -> tf.RaggedTensor:
    """Return the hashed ids of all n-grams of 1 to `longest` words.

    The hash of an n-gram is computed from the hashes of its words (a multiplicative hash, as in
    fastText), without joining strings. An opening is the beginning of a review. The id of an n-gram
    differs between the openings and the whole text, because a title predicts the sentiment better
    than the text below it.

    Args:
      tokens: strings, shape [batch, (words)].
      longest: length of the longest n-gram, in words.
      buckets: number of ids.
      openings: lengths of the openings, in words.

    Returns:
      int64 ids in [0, buckets), shape [batch, (n-grams)]. Each row begins with the n-grams of each
      opening, followed by the n-grams of the whole text. In each of these parts, shorter n-grams
      precede longer ones.
    """
    hashes = tokens.with_values(tf.strings.to_hash_bucket_fast(tokens.flat_values, WORD_HASHES))
    ids = []
    for number, length in enumerate(openings):
        first = hashes[:, :length]
        marked = first.with_values(first.flat_values + opening_mark(number))
        ids += _by_length(marked, longest, buckets)
    return tf.concat(ids + _by_length(hashes, longest, buckets), axis=1)


def opening_mark(number: int) -> int:
    """Return the number below 2^63 that is added to the hashes of the words in an opening.

    Args:
      number: the number of the opening, from 0.
    """
    return (number + 1) * _OPENING % 2**63


def _by_length(hashes: tf.RaggedTensor, longest: int, buckets: int) -> list[tf.RaggedTensor]:
    """Return the ids of the n-grams of each length, from the hashes of words."""
    row_ids = hashes.value_rowids()
    words = grams = hashes.flat_values
    by_length = [hashes.with_values(tf.math.floormod(words, buckets))]
    for length in range(2, longest + 1):
        # The slices keep the positions at which an n-gram of this length can start. `inside` then
        # keeps the n-grams that do not extend into the next review.
        grams = grams[:-1] * MULTIPLIER + words[length - 1 :]
        inside = tf.equal(row_ids[: -(length - 1)], row_ids[length - 1 :])
        by_length.append(
            tf.RaggedTensor.from_value_rowids(
                tf.boolean_mask(tf.math.floormod(grams, buckets), inside),
                tf.boolean_mask(row_ids[: -(length - 1)], inside),
                nrows=hashes.nrows(),
            )
        )
    return by_length


WORD_HASHES = 2**62
"""The number of different hashes of words."""
MULTIPLIER = 116049371
"""The prime by which fastText combines the hashes of words; int64 products wrap around."""
_OPENING = 0x2545F4914F6CDD1D
"""An arbitrary odd number with many bits."""
