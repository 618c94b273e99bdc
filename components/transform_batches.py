"""The transformed features of batches of Examples."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import tensorflow as tf
import tensorflow_transform as tft
from absl import logging
from tfx_bsl.tfxio.tensor_to_arrow import TensorsToRecordBatchConverter

from core.machine import cores
from examples.tfrecords import read
from preprocessing import features
from preprocessing.fast.encode import encode_examples
from preprocessing.fast.ngrams import (
    DIFFICULT_TEXTS,
    NgramIds,
    Words,
    length_buckets,
    ngram_ids,
    split_words,
)
from preprocessing.settings import TransformConfig


class TransformedBatch(NamedTuple):
    """The transformed features of a batch.

    Attributes:
      records: all features.
      labels: the labels, int64 [batch].
      ngrams: the n-grams; None if the model does not read them.
    """

    records: pa.RecordBatch
    labels: np.ndarray
    ngrams: NgramIds | None


class BatchTransformer:
    """A function from the Examples of a file to transformed batches.

    Compiled code computes some features of the words of a text in a fraction of the time that the
    operations of the transform graph take; `equal_features` decides which ones.

    Args:
      graph: the folder of the transform graph.
      spec: the parsing spec of the raw features.
      config: the custom config of Transform.
      compiled: the features that compiled code computes.
    """

    def __init__(
        self,
        graph: str,
        spec: Mapping[str, Any],
        config: TransformConfig,
        compiled: Collection[str] = (),
    ):
        self._layer = tft.TFTransformOutput(graph).transform_features_layer()
        self._spec, self._config, self._compiled = spec, config, compiled

    def transform(
        self, batches: tf.data.Dataset, files: Sequence[str]
    ) -> Iterator[tuple[int, TransformedBatch]]:
        """Yield each batch with its number.

        Args:
          batches: pairs of the number of a batch, int64 [], and its Examples, string [batch].
          files: the gzipped TFRecord files that `batches` reads.

        Raises:
          InputError: a file is damaged.
          tensorflow.errors.OpError: a file cannot be read.
        """
        transformed = batches.map(self._apply, cores(), deterministic=True).prefetch(2)
        *_, specs = transformed.element_spec
        converter = TensorsToRecordBatchConverter(specs)
        for number, texts, tensors in read(transformed, files):
            records = converter.convert(tensors)
            ngrams = None
            if features.NGRAMS in tensors:
                ngrams = _sparse_rows(tensors[features.NGRAMS])
            if self._compiled:
                words = split_words(texts.numpy()[:, 0].tolist())
                ngrams = _ngrams(words, self._config)
                records = _with_words(records, words, ngrams, self._compiled)
            labels = tensors[features.LABEL].numpy()[:, 0]
            yield int(number), TransformedBatch(records, labels, ngrams)

    def equal_features(self, examples: Sequence[bytes]) -> frozenset[str]:
        """Return the features that compiled code computes as the graph does, bit for bit.

        The served model contains the graph, and a `preprocessing_fn` may have been changed to other
        words or n-grams. So both are compared on Examples and on a sample of difficult texts.

        Args:
          examples: serialized Examples.

        Returns:
          Names of features; none if the model reads no n-grams, or if the n-grams differ, because
          the graph then splits the texts into words anyway.
        """
        if features.NGRAMS not in self._config.features:
            return frozenset()
        missing = {name: [value] for name, value, _ in features.further_columns()}
        difficult = [
            example
            for text in DIFFICULT_TEXTS
            for example in encode_examples({features.TEXT: [text], features.LABEL: [0], **missing})
        ]
        raw = tf.io.parse_example([*examples, *difficult], self._spec)
        by_graph = self._layer(raw)
        words = split_words(raw[features.TEXT].numpy()[:, 0].tolist())
        ngrams = _ngrams(words, self._config)
        buckets = np.array(features.LENGTH_BUCKETS, np.bytes_)[length_buckets(words)]
        equal = set()
        found = by_graph.get(features.NGRAMS)
        if isinstance(found, tf.SparseTensor):
            pairs = zip(ngrams, _sparse_rows(found), strict=True)
            if all(np.array_equal(own, of_graph) for own, of_graph in pairs):
                equal.add(features.NGRAMS)
        found = by_graph.get(features.LENGTH_BUCKET)
        if (
            isinstance(found, tf.Tensor)
            and found.dtype == tf.string
            and np.array_equal(found.numpy().astype(np.bytes_), buckets[:, None])
        ):
            equal.add(features.LENGTH_BUCKET)
        others = {features.NGRAMS, features.LENGTH_BUCKET}.intersection(by_graph) - equal
        if others:
            logging.warning(
                "preprocessing_fn computes %s in another way than preprocessing.fast.ngrams. The "
                "transform graph computes it, which takes longer",
                " and ".join(sorted(others)),
            )
        return frozenset(equal if features.NGRAMS in equal else ())

    # AutoGraph would take seconds, and the layer is a graph already.
    @tf.autograph.experimental.do_not_convert
    def _apply(
        self, number: tf.Tensor, serialized: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, dict[str, Any]]:
        raw = tf.io.parse_example(serialized, self._spec)
        # TensorFlow executes only the operations of the features that are kept.
        outputs = self._layer(raw)
        kept = {name: value for name, value in outputs.items() if name not in self._compiled}
        texts = raw[features.TEXT]
        return number, texts if self._compiled else texts[:0], kept


def _ngrams(words: Words, config: TransformConfig) -> NgramIds:
    settings = config.transform
    return ngram_ids(
        words,
        settings.ngrams,
        settings.ngram_buckets,
        settings.openings,
        settings.character_ngrams,
    )


def _sparse_rows(sparse: tf.SparseTensor) -> NgramIds:
    """Return the rows of a sparse feature of a batch."""
    row_numbers = sparse.indices.numpy()[:, 0]
    row_lengths = np.bincount(row_numbers, minlength=int(sparse.shape[0]))
    return NgramIds(sparse.values.numpy(), row_lengths)


def _with_words(
    records: pa.RecordBatch, words: Words, ngrams: NgramIds, compiled: Collection[str]
) -> pa.RecordBatch:
    """Return the records with the features of words that `compiled` names."""
    columns = dict(zip(records.schema.names, records.columns, strict=True))
    row_ends = pa.array(np.append(0, np.cumsum(ngrams.row_lengths)))
    columns[features.NGRAMS] = pa.LargeListArray.from_arrays(row_ends, pa.array(ngrams.ids))
    if features.LENGTH_BUCKET in compiled:
        names = pa.array(features.LENGTH_BUCKETS, pa.large_binary())
        of_texts = names.take(pa.array(length_buckets(words)))
        columns[features.LENGTH_BUCKET] = pa.LargeListArray.from_arrays(
            pa.array(np.arange(len(of_texts) + 1)), of_texts
        )
    return pa.RecordBatch.from_arrays(list(columns.values()), list(columns))
