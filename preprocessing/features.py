"""Names and specs of all features.

ReviewExampleGen writes Examples with the raw features. Transform writes Examples with the
transformed features, which the trainer reads.
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
"""The id that pads the rows of a batch to one width; no word and no file has this id."""
UNKNOWN_TOKEN = 1
"""The id of all words outside the vocabulary."""
FIRST_TOKEN = 2
"""The id of the most frequent word; the ids of rarer words follow."""
VOCABULARY = "words"
"""Name of the file that lists the words of TOKENS, most frequent first."""
SETTINGS = {
    NGRAMS: ("ngrams", "ngram_buckets", "openings"),
    TOKENS: ("vocabulary_size", "max_tokens"),
}
"""The `transform` settings that each of the model's features depends on."""

LENGTH_BUCKET = "length_bucket"
"""The length of the review, one of LENGTH_BUCKETS, for slicing the evaluation."""

LENGTH_BOUNDARIES = (20, 50, 100, 200)
LENGTH_BUCKETS = ("1-19", "20-49", "50-99", "100-199", "200+")
"""Ranges of words per review."""


def raw_feature_spec() -> dict[str, Any]:
    """Return the parsing spec for prediction: the text of a raw Example, shape [1], no label."""
    return {TEXT: tf.io.FixedLenFeature([1], tf.string)}
