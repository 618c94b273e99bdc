"""preprocessing_fn, the entry point of Transform: raw features in, the model's features out."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
import tensorflow_transform as tft

from preprocessing import features, normalise
from preprocessing.settings import TransformConfig


def preprocessing_fn(inputs: dict[str, Any], custom_config: dict[str, Any]) -> dict[str, Any]:
    """Return the transformed features of a batch.

    Args:
      inputs: raw features: `text` string [batch, 1], `label` int64 [batch, 1].
      custom_config: `TransformConfig` as a dictionary. The features that the model reads are
        NGRAMS, TOKENS or both.

    Returns:
      `label` int64 [batch, 1] and `length_bucket` string [batch, 1]. If `custom_config` names them,
      also the sparse features `ngrams` int64 [batch, (n-grams)] and `tokens` int64 [batch, (words)]
      of at most `max_tokens` words.
    """
    config = TransformConfig.from_dict(custom_config)
    tokens = normalise.words(tf.squeeze(inputs[features.TEXT], axis=1))
    outputs = {
        features.LABEL: inputs[features.LABEL],
        features.LENGTH_BUCKET: _length_bucket(tokens),
    }
    if features.NGRAMS in config.features:
        outputs[features.NGRAMS] = normalise.ngram_ids(
            tokens,
            config.transform.ngrams,
            config.transform.ngram_buckets,
            config.transform.openings,
            config.transform.character_ngrams,
        ).to_sparse()
    if features.TOKENS in config.features:
        outputs[features.TOKENS] = _token_ids(
            tokens, config.transform.vocabulary_size, config.transform.max_tokens
        )
    return outputs


def _length_bucket(tokens: tf.RaggedTensor) -> tf.Tensor:
    boundaries = tf.constant(features.LENGTH_BOUNDARIES, tf.int64)
    index = tf.searchsorted(boundaries, tokens.row_lengths(), side="right")
    return tf.expand_dims(tf.gather(tf.constant(features.LENGTH_BUCKETS), index), axis=1)


def _token_ids(tokens: tf.RaggedTensor, vocabulary_size: int, max_tokens: int) -> tf.SparseTensor:
    """Return the ids of words, without padding; FIRST_TOKEN is the id of the most frequent word."""
    known = tokens[:, :max_tokens]
    # Words are counted in the graph, batch by batch. Passed to Beam one by one, they would take
    # sixty times as long.
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
