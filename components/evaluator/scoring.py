"""The Beam stage of an evaluation: files of Examples -> counts of each slice.

A slice has the same reviews for the candidate and the baseline, so their metrics can be compared.
The length of a review follows from the number of its words, which NumPy counts. Other features of
slices are outputs of the candidate's signature `transform_features`.

For a model that reads n-grams, NumPy computes the n-grams once for all models. The predictions from
them are compared with those of `serving_default` on the first reviews of each unit of files. If
they differ, the signature is used.
"""

from __future__ import annotations

import heapq
import zlib
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np
import tensorflow as tf
from absl import logging
from apache_beam.utils.shared import Shared
from tfx_bsl.coders import example_coder

from components.evaluator.files import CANDIDATE, WHOLE, Slice, digest
from components.evaluator.metrics import Counts
from components.examples import batches, read
from components.tfrecords import cores
from core.errors import InputError
from core.progress import Progress
from preprocessing import features
from preprocessing.fast.ngrams import NgramIds, length_buckets, ngram_ids
from preprocessing.features import THRESHOLD
from serving.predict_text import PREDICT_NGRAMS, PREDICT_TEXT, NgramSettings, predict_text_of

SAMPLE_SIZE = 1000
"""Examples whose predictions are stored; the smallest hashes, as in `components.examples`."""
MISTAKES = 20
_TEXT_SIZE = 2000
"""Characters of a mistake that are stored."""
_BATCH = 4096
_BYTES_AT_ONCE = 8 << 20
"""Bytes of Examples that are scored together; bounds the memory of long reviews."""
_GRAPH_BATCH = 512
"""Examples that a signature gets together. A sequence model has 400 KB of activations for each."""
_COMPARED = 64
_WORDS: NgramSettings = (1, 2, ())
"""Settings for texts whose number of words is all that is needed."""


class Scores(NamedTuple):
    """What is known of the scored reviews; its size does not grow with their number.

    Attributes:
      slices: slice -> CANDIDATE or BASELINE -> counts.
      sampled: hash of an Example, its digest and its prediction, the smallest hashes.
      mistakes: minus the confidence, hash, text, label and probability, the most confident.
    """

    slices: dict[Slice, dict[str, Counts]]
    sampled: list[tuple[int, str, float]]
    mistakes: list[tuple[float, int, str, int, float]]


def merge(parts: Iterable[Scores]) -> Scores:
    """Return the scores of all reviews of which `parts` are the scores."""
    slices: dict[Slice, dict[str, Counts]] = {}
    parts = list(parts)
    for part in parts:
        for of_slice, models in part.slices.items():
            known = slices.setdefault(of_slice, {})
            for name, counts in models.items():
                known[name] = known[name] + counts if name in known else counts
    return Scores(
        slices,
        heapq.nsmallest(SAMPLE_SIZE, chain.from_iterable(part.sampled for part in parts)),
        heapq.nsmallest(MISTAKES, chain.from_iterable(part.mistakes for part in parts)),
    )


class ScoreFiles(beam.DoFn):
    """Gzipped files of Examples -> their Scores.

    Args:
      folders: CANDIDATE and, if there is one, BASELINE -> folder of the model.
      slices: features by which the metrics are also broken down.
    """

    def __init__(self, folders: Mapping[str, str], slices: Sequence[str]):
        self._folders = dict(folders)
        self._slices = tuple(slices)
        self._shared = Shared()

    def setup(self) -> None:
        self._decoder = example_coder.ExamplesToRecordBatchDecoder()
        self._models = self._shared.acquire(
            lambda: Models(self._folders, self._slices), (self._folders, self._slices)
        )

    def process(self, files: Sequence[str]) -> Iterator[Scores]:
        """Score the files in as many threads as there are cores."""
        running: deque[Future[Scores]] = deque()
        scores = merge([])
        with ThreadPoolExecutor(cores()) as pool, Progress("reviews", files[0]) as progress:
            for number, examples in enumerate(_batches(files)):
                if number == 0:
                    self._models.check(*self._decoded(examples[:_COMPARED])[:2])
                running.append(pool.submit(self._score, examples))
                progress.advance(len(examples))
                if len(running) > cores():
                    scores = merge([scores, running.popleft().result()])
            yield merge([scores, *(future.result() for future in running)])

    def _decoded(self, examples: np.ndarray) -> tuple[list[bytes], list[bytes], np.ndarray]:
        """Return serialized Examples, their texts and their labels, int64 [batch]."""
        decoded = self._decoder.DecodeBatch(examples)
        columns = dict(zip(decoded.schema.names, decoded.columns, strict=True))
        labels = columns[features.LABEL].flatten().to_numpy(zero_copy_only=False)
        texts = columns[features.TEXT].flatten().to_pylist()
        return examples.tolist(), texts, labels.astype(np.int64)

    def _score(self, batch: np.ndarray) -> Scores:
        examples, texts, labels = self._decoded(batch)
        predictions, sliced = self._models.score(examples, texts)
        members = {WHOLE: np.ones(len(labels), bool)} | {
            (feature, value): column == value
            for feature, column in sliced.items()
            for value in np.unique(column).tolist()
        }
        slices = {
            of_slice: {
                model: Counts.of(labels[here], found[here]) for model, found in predictions.items()
            }
            for of_slice, here in members.items()
        }
        own = predictions[CANDIDATE]
        hashes = np.fromiter(map(zlib.crc32, examples), np.int64, len(examples))
        sampled = [
            (int(hashes[n]), digest(examples[n]), float(own[n]))
            for n in np.argsort(hashes, kind="stable")[:SAMPLE_SIZE].tolist()
        ]
        certainty = np.where((own > THRESHOLD) != labels, -np.abs(own - THRESHOLD), 1.0)
        mistakes = [
            (
                float(certainty[n]),
                int(hashes[n]),
                texts[n].decode("utf-8", "replace")[:_TEXT_SIZE],
                int(labels[n]),
                float(own[n]),
            )
            for n in np.lexsort((hashes, certainty))[:MISTAKES].tolist()
            if certainty[n] <= 0
        ]
        return Scores(slices, sampled, mistakes)


class Models:
    """The loaded models of an evaluation. Several threads may use them.

    Args:
      folders: CANDIDATE and, if there is one, BASELINE -> folder of the model.
      slices: features by which the metrics are also broken down.

    Raises:
      InputError: the candidate does not compute a feature.
    """

    def __init__(self, folders: Mapping[str, str], slices: Sequence[str]):
        self._models = {name: _Model(folder) for name, folder in folders.items()}
        self._by_length = features.LENGTH_BUCKET in slices
        self._others = [name for name in slices if name != features.LENGTH_BUCKET]
        for name in self._others:
            if name not in self._models[CANDIDATE].features:
                raise InputError(f"evaluation.slices: the model does not compute {name}")

    def check(self, examples: Sequence[bytes], texts: Sequence[bytes]) -> None:
        """Use the signature of a model whose predictions from NumPy's n-grams differ from it."""
        for model in self._models.values():
            model.check(examples, texts)

    def score(
        self, examples: Sequence[bytes], texts: Sequence[bytes]
    ) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """Return the predictions of each model, float64 [batch], and of each slice its feature.

        Args:
          examples: serialized Examples.
          texts: their texts in UTF-8.
        """
        used = {settings for model in self._models.values() if (settings := model.ngrams)}
        if self._by_length and not used:
            used = {_WORDS}
        ngrams = {settings: ngram_ids(texts, *settings) for settings in used}
        sliced = {}
        if self._by_length:
            (longest, _, openings), (_, row_lengths) = next(iter(ngrams.items()))
            names = np.array(features.LENGTH_BUCKETS, object)
            sliced[features.LENGTH_BUCKET] = names[length_buckets(row_lengths, longest, openings)]
        if self._others:
            found = self._models[CANDIDATE].call("transform_features", examples, self._others)
            for name, values in found.items():
                sliced[name] = np.array([value.decode() for value in values.ravel()], object)
        return {name: model.score(examples, ngrams) for name, model in self._models.items()}, sliced


class _Model:
    """One loaded model.

    Attributes:
      features: the features that the model computes.
      ngrams: the settings of the n-grams from which it predicts; None: it reads Examples.
    """

    def __init__(self, folder: str):
        self._folder = folder
        self._loaded = tf.saved_model.load(folder)
        self._signatures = self._loaded.signatures
        transform = self._signatures.get("transform_features")
        self.features = transform.structured_outputs if transform else {}
        self.ngrams: NgramSettings | None = None
        if {PREDICT_TEXT, PREDICT_NGRAMS} <= set(self._signatures):
            self._by_ngrams = predict_text_of(self._loaded, folder)
            self.ngrams = self._by_ngrams.ngram_settings

    def check(self, examples: Sequence[bytes], texts: Sequence[bytes]) -> None:
        if self.ngrams is None:
            return
        found = self.score(examples, {self.ngrams: ngram_ids(texts, *self.ngrams)})
        # TensorFlow's sigmoid depends in the last bit on the size of the batch.
        if not np.allclose(found, self.score(examples, {}), rtol=0, atol=1e-6):
            logging.warning(
                "%s: serving_default returns other values than NumPy; the signature is used, which "
                "is slower. Another version of this code exported the model",
                self._folder,
            )
            self.ngrams = None

    def score(self, examples: Sequence[bytes], ngrams: Mapping[Any, NgramIds]) -> np.ndarray:
        """Return the predictions, float64 [batch], from the n-grams where that is possible."""
        if self.ngrams in ngrams:
            found = self._by_ngrams.from_ngrams(ngrams[self.ngrams])["probability"]
        else:
            found = self.call("serving_default", examples, ["probability"])["probability"]
        return np.asarray(found).reshape(-1).astype(np.float64)

    def call(
        self, signature: str, examples: Sequence[bytes], names: Sequence[str]
    ) -> dict[str, np.ndarray]:
        """Return some outputs of a signature for serialized Examples."""
        parts = [
            self._signatures[signature](tf.constant(examples[at : at + _GRAPH_BATCH], tf.string))
            for at in range(0, len(examples), _GRAPH_BATCH)
        ]
        return {name: np.concatenate([part[name].numpy() for part in parts]) for name in names}


def _batches(files: Sequence[str]) -> Iterator[np.ndarray]:
    """Yield the serialized Examples of the files in batches, bytes [batch]."""
    for examples in read(batches(files, _BATCH).prefetch(1), files):
        batch = examples.numpy()
        sizes = np.cumsum(np.fromiter(map(len, batch), np.int64, len(batch)))
        edges = np.flatnonzero(np.diff(sizes // _BYTES_AT_ONCE)) + 1
        yield from np.split(batch, edges)
