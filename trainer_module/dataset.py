"""Transformed TFRecords -> batches for the model, streamed: memory does not grow with the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from preprocessing import features

_PARSE_CHUNK = 1024


def feature_spec(names: Sequence[str], transform: Mapping[str, Any]) -> dict[str, Any]:
    """tf.io parsing spec of the label and the model's features, under the `transform` settings."""
    spec: dict[str, Any] = {features.LABEL: tf.io.FixedLenFeature([1], tf.int64)}
    if features.NGRAMS in names:
        spec[features.NGRAMS] = tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int64)
    if features.TOKENS in names:
        spec[features.TOKENS] = tf.io.FixedLenFeature([transform["max_tokens"]], tf.int64)
    return spec


def make_dataset(
    patterns: Sequence[str],
    spec: dict[str, Any],
    batch_size: int,
    *,
    shuffle_buffer: int = 0,
    seed: int = 0,
) -> tf.data.Dataset:
    """Batches of ({feature: values}, float32 label [batch, 1]).

    Args:
      patterns: globs of gzipped TFRecord files.
      spec: see `feature_spec`.
      batch_size: examples per batch, over all replicas.
      shuffle_buffer: 0 reads in order; otherwise files are read in a new random order each epoch
        and this many examples are mixed.
      seed: of the shuffling.
    """
    files = tf.data.Dataset.list_files(list(patterns), shuffle=bool(shuffle_buffer), seed=seed)
    records = files.interleave(
        lambda file: tf.data.TFRecordDataset(file, compression_type="GZIP"),
        cycle_length=8,
        num_parallel_calls=tf.data.AUTOTUNE,
        deterministic=True,
    )
    if shuffle_buffer:
        records = records.shuffle(shuffle_buffer, seed=seed)

    def parse(serialized: tf.Tensor) -> tuple[dict[str, Any], tf.Tensor]:
        parsed = tf.io.parse_example(serialized, spec)
        label = tf.cast(parsed.pop(features.LABEL), tf.float32)
        return parsed, label

    return (
        records.batch(batch_size)
        .map(parse, num_parallel_calls=tf.data.AUTOTUNE)
        .prefetch(tf.data.AUTOTUNE)
    )


def count_examples(patterns: Sequence[str]) -> int:
    """How many records the files hold; reads them once, without parsing."""
    files = tf.data.Dataset.list_files(list(patterns), shuffle=False)
    records = tf.data.TFRecordDataset(files, "GZIP", num_parallel_reads=8)
    counts = records.batch(_PARSE_CHUNK).map(lambda r: tf.size(r, tf.int64))
    return int(counts.reduce(tf.constant(0, tf.int64), lambda a, b: a + b))
