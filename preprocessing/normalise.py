"""Text to words, in the graph: the same TensorFlow ops in Transform, training and serving."""

from __future__ import annotations

import tensorflow as tf

_PUNCTUATION = r"[!-&(-/:-@\[-`{-~]+"
"""Runs of ASCII punctuation but the apostrophe, which is part of a word: don't."""


def words(texts: tf.Tensor) -> tf.RaggedTensor:
    """Lower-cased words of each text; a run of punctuation is a word of its own.

    Args:
      texts: strings in UTF-8, shape [batch].

    Returns:
      strings, shape [batch, (words)].
    """
    lowered = tf.strings.lower(texts, encoding="utf-8")
    return tf.strings.split(tf.strings.regex_replace(lowered, _PUNCTUATION, r" \0 "))


def ngram_ids(tokens: tf.RaggedTensor, longest: int, buckets: int) -> tf.RaggedTensor:
    """Hashed ids of all word n-grams of 1 to `longest` words.

    An n-gram's hash is made from those of its words (a multiplicative hash, as in fastText), so
    no string is ever joined.

    Args:
      tokens: strings, shape [batch, (words)].
      longest: length of the longest n-gram, in words.
      buckets: how many ids there are.

    Returns:
      int64 ids in [0, buckets), shape [batch, (n-grams)], shorter n-grams first.
    """
    row_ids = tokens.value_rowids()
    hashes = tf.strings.to_hash_bucket_fast(tokens.flat_values, _WORD_HASHES)
    grams = hashes
    by_length = [tokens.with_values(tf.math.floormod(hashes, buckets))]
    for length in range(2, longest + 1):
        # Both are cut to the positions where a gram of this length can start, then to those
        # where it does not run into the next review.
        grams = grams[:-1] * _MULTIPLIER + hashes[length - 1 :]
        inside = tf.equal(row_ids[: -(length - 1)], row_ids[length - 1 :])
        by_length.append(
            tf.RaggedTensor.from_value_rowids(
                tf.boolean_mask(tf.math.floormod(grams, buckets), inside),
                tf.boolean_mask(row_ids[: -(length - 1)], inside),
                nrows=tokens.nrows(),
            )
        )
    return tf.concat(by_length, axis=1)


_WORD_HASHES = 2**62
_MULTIPLIER = 116049371
"""The prime that fastText combines word hashes with; int64 products wrap around."""
