"""Feature names and specs, the single place where they are spelled.

Raw features stand in the Examples that ReviewExampleGen writes, transformed ones in those that
Transform writes and the trainer reads.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

TEXT = "text"
TITLE = "title"
BODY = "body"
LABEL = "label"

NGRAMS = "ngrams"
"""Ids of hashed word n-grams, int64 in [0, buckets), ragged."""
TOKENS = "tokens"
"""Ids of the first `max_tokens` words, int64 in [UNKNOWN_TOKEN, vocabulary + 2), ragged."""
PADDING_TOKEN = 0
"""Fills the rows of a batch up to one width; no word has it, and no file holds it."""
UNKNOWN_TOKEN = 1
"""Any word outside the vocabulary."""
FIRST_TOKEN = 2
"""The most frequent word; rarer ones follow."""
VOCABULARY = "words"
"""Name of the file that lists the words of TOKENS, most frequent first."""
SETTINGS = {
    NGRAMS: ("ngrams", "ngram_buckets"),
    TOKENS: ("vocabulary_size", "max_tokens"),
}
"""The `transform` settings that each of the model's features depends on."""

LENGTH_BUCKET = "length_bucket"
"""How long the review is, one of LENGTH_BUCKETS, for slicing the evaluation."""

LENGTH_BOUNDARIES = (20, 50, 100, 200)
LENGTH_BUCKETS = ("1-19", "20-49", "50-99", "100-199", "200+")
"""Words per review."""


def raw_feature_spec() -> dict[str, Any]:
    """What a model needs of a raw Example to predict: the text, shape [1], and no label."""
    return {TEXT: tf.io.FixedLenFeature([1], tf.string)}
