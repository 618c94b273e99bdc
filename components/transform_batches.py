"""The transformed features of batches of Examples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
from preprocessing.fast.ngrams import (
    DIFFICULT_TEXTS,
    NgramIds,
    Words,
    length_buckets,
    ngram_ids,
    split_words,
)
from preprocessing.settings import TransformConfig

_OF_WORDS = (features.NGRAMS, features.LENGTH_BUCKET)
"""The features that compiled code computes from the words of a text."""


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

    Compiled code computes n-grams in a fraction of the time that the operations of the transform
    graph take. But the served model contains the graph, and a `preprocessing_fn` may have been
    changed to other words or n-grams. So both are compared on a sample of difficult texts. If their
    features are not equal bit for bit, the graph computes all features.

    Args:
      graph: the folder of the transform graph.
      spec: the parsing spec of the raw features.
      config: the custom config of Transform.
    """

    def __init__(self, graph: str, spec: Mapping[str, Any], config: TransformConfig):
        self._layer = tft.TFTransformOutput(graph).transform_features_layer()
        self._spec, self._transform = spec, config.transform
        # Without n-grams, the graph has to split the texts into words for other features.
        self._compiled = features.NGRAMS in config.features and self._equals_the_graph()

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
            labels = tensors[features.LABEL].numpy()[:, 0]
            ngrams = None
            if self._compiled:
                words = split_words(texts.numpy()[:, 0].tolist())
                ngrams = self._ngrams(words)
                records = _with_words(records, words, ngrams)
            elif features.NGRAMS in tensors:
                ngrams = _sparse_rows(tensors[features.NGRAMS])
            yield int(number), TransformedBatch(records, labels, ngrams)

    # AutoGraph would take seconds, and the layer is a graph already.
    @tf.autograph.experimental.do_not_convert
    def _apply(
        self, number: tf.Tensor, serialized: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, dict[str, Any]]:
        raw = tf.io.parse_example(serialized, self._spec)
        outputs = dict(self._layer(raw))
        if self._compiled:
            # TensorFlow then executes only the operations of the other features.
            outputs = {name: value for name, value in outputs.items() if name not in _OF_WORDS}
        return number, raw[features.TEXT], outputs

    def _equals_the_graph(self) -> bool:
        """Return whether the graph computes the features of words as the compiled code does."""
        texts = list(DIFFICULT_TEXTS)
        raw = features.raw_features(tf.constant(texts))
        found = self._layer({**raw, features.LABEL: tf.zeros([len(texts), 1], tf.int64)})
        words = split_words(texts)
        ngrams = self._ngrams(words)
        own = (*ngrams, np.array(features.LENGTH_BUCKETS, object)[length_buckets(words)])
        if all(name in found for name in _OF_WORDS):
            buckets = found[features.LENGTH_BUCKET].numpy()[:, 0].astype(str)
            if all(map(np.array_equal, own, (*_sparse_rows(found[features.NGRAMS]), buckets))):
                return True
        logging.warning(
            "preprocessing_fn computes other words or n-grams than preprocessing.fast.ngrams. The "
            "transform graph computes them, which takes twice as long"
        )
        return False

    def _ngrams(self, words: Words) -> NgramIds:
        settings = self._transform
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


def _with_words(records: pa.RecordBatch, words: Words, ngrams: NgramIds) -> pa.RecordBatch:
    """Return the records with the features that `_OF_WORDS` names."""
    row_ends = np.cumsum(ngrams.row_lengths)
    ngram_lists = pa.LargeListArray.from_arrays(
        pa.array(np.append(0, row_ends)), pa.array(ngrams.ids)
    )
    buckets = pa.array(features.LENGTH_BUCKETS, pa.large_binary()).take(
        pa.array(length_buckets(words))
    )
    single = pa.LargeListArray.from_arrays(pa.array(np.arange(len(buckets) + 1)), buckets)
    return pa.RecordBatch.from_arrays(
        [*records.columns, ngram_lists, single], [*records.schema.names, *_OF_WORDS]
    )
