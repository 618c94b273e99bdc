"""preprocessing_fn: raw review features in, the features of the chosen model out."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
import tensorflow_transform as tft

from preprocessing import features, normalise


def preprocessing_fn(inputs: dict[str, Any], custom_config: dict[str, Any]) -> dict[str, Any]:
    """TFX Transform's entry point.

    Args:
      inputs: raw features; `text` and `label` have shape [batch, 1].
      custom_config: the `transform` settings, and under `features` which of NGRAMS and TOKENS
        the model reads.

    Returns:
      `label` int64 [batch, 1], `length_bucket` string [batch, 1], and of those that are asked for
      `ngrams` int64 [batch, (n-grams)] and `tokens` int64 [batch, (words)], both sparse, with at
      most max_tokens words.
    """
    tokens = normalise.words(tf.squeeze(inputs[features.TEXT], axis=1))
    outputs = {
        features.LABEL: inputs[features.LABEL],
        features.LENGTH_BUCKET: _length_bucket(tokens),
    }
    if features.NGRAMS in custom_config["features"]:
        outputs[features.NGRAMS] = normalise.ngram_ids(
            tokens, custom_config["ngrams"], custom_config["ngram_buckets"]
        ).to_sparse()
    if features.TOKENS in custom_config["features"]:
        outputs[features.TOKENS] = _token_ids(
            tokens, custom_config["vocabulary_size"], custom_config["max_tokens"]
        )
    return outputs


def _length_bucket(tokens: tf.RaggedTensor) -> tf.Tensor:
    boundaries = tf.constant(features.LENGTH_BOUNDARIES, tf.int64)
    index = tf.searchsorted(boundaries, tokens.row_lengths(), side="right")
    return tf.expand_dims(tf.gather(tf.constant(features.LENGTH_BUCKETS), index), axis=1)


def _token_ids(tokens: tf.RaggedTensor, vocabulary_size: int, max_tokens: int) -> tf.SparseTensor:
    """1 is a word outside the vocabulary, the most frequent word is 2; nothing is padded."""
    known = tokens[:, :max_tokens]
    # Counted in the graph, batch by batch: handed to Beam one by one, words take a minute for
    # what is here a second.
    words, _, counts = tf.unique_with_counts(known.flat_values)
    vocabulary = tft.vocabulary(
        words,
        top_k=vocabulary_size,
        vocab_filename=features.VOCABULARY,
        weights=tf.cast(counts, tf.float32),
    )
    ids = tft.apply_vocabulary(
        known.to_sparse(),
        vocabulary,
        default_value=features.UNKNOWN_TOKEN - features.FIRST_TOKEN,
    )
    return tf.SparseTensor(ids.indices, ids.values + features.FIRST_TOKEN, ids.dense_shape)
