"""Names and specs of all features.

ReviewExampleGen writes Examples with the raw features, the `COLUMNS`. Transform writes Examples
with the transformed features, which the trainer reads. The readers of files import this module, so
it imports TensorFlow only in functions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

TEXT = "text"
LABEL = "label"
UNDECIDED = 0.7
"""Minimum probability of the predicted label. Below it the page of the server shows a review as
undecided."""


class Column(NamedTuple):
    """A column of the raw Examples."""

    name: str
    missing: bytes | int  # the value if the input lacks the column; it has the type of the feature
    known_names: tuple[str, ...] = ()  # the names in known datasets, in lower case


COLUMNS: tuple[Column, ...] = (Column(TEXT, b""), Column(LABEL, 0))
"""The columns of every raw Example. The text includes the title; `preprocessing.reading` has the
rules for the text and the label. Each further column is read from the column of a file that
`data.columns` or `known_names` names. If a file has no such column, the value is `missing`."""

NGRAMS = "ngrams"
"""Ids of hashed n-grams of words and of characters, int64 in [0, buckets), ragged."""
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
    NGRAMS: ("ngrams", "ngram_buckets", "openings", "character_ngrams"),
    TOKENS: ("vocabulary_size", "max_tokens"),
}
"""Name of a feature -> the `transform` settings on which the feature depends."""

LENGTH_BUCKET = "length_bucket"
"""The length of the review, one of LENGTH_BUCKETS, for slicing the evaluation."""

LENGTH_BOUNDARIES = (20, 50, 100, 200)
LENGTH_BUCKETS = ("1-19", "20-49", "50-99", "100-199", "200+")
"""Ranges of words per review."""


def further_columns() -> tuple[Column, ...]:
    """Return the columns beside the text and the label."""
    return COLUMNS[2:]


def raw_feature_spec() -> dict[str, Any]:
    """Return the parsing spec for prediction: all raw features but the label, each of shape [1]."""
    import tensorflow as tf

    further = {
        name: tf.io.FixedLenFeature(
            [1], tf.string if isinstance(missing, bytes) else tf.int64, [missing]
        )
        for name, missing, _ in further_columns()
    }
    return {TEXT: tf.io.FixedLenFeature([1], tf.string), **further}


def raw_features(texts: Any) -> dict[str, Any]:
    """Return the raw features, of shape [batch, 1], of texts without further columns.

    Args:
      texts: a string tensor of shape [batch].
    """
    import tensorflow as tf

    texts = tf.expand_dims(texts, axis=1)
    further = {
        name: tf.fill(tf.shape(texts), tf.constant(spec.default_value[0], spec.dtype))
        for name, spec in raw_feature_spec().items()
        if name != TEXT
    }
    return {TEXT: texts, **further}
