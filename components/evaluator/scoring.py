"""The Beam stage of an evaluation: files of Examples -> counts of each slice.

A slice contains the same reviews for the candidate and the baseline, so their metrics can be
compared. The slices by length use the number of words, and those by a pattern use the text. The
values of other features are outputs of the candidate's signature `transform_features`.
"""

from __future__ import annotations

import re
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache, partial
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np
import tensorflow as tf
from apache_beam.utils.shared import Shared
from tfx_bsl.coders import example_coder

from components.evaluator.counts import Counts
from components.evaluator.files import BASELINE, CANDIDATE, WHOLE, Slice, digest
from components.evaluator.scores import (
    MISTAKES,
    REGRESSIONS,
    ChangedAnswers,
    Mistake,
    Scores,
    confusion_texts,
    merge,
    most_confident,
)
from components.evaluator.thresholds import Evaluation
from components.examples import SAMPLE_SIZE
from core.machine import cores
from core.progress import Progress
from examples.tfrecords import batches, read
from preprocessing import features
from preprocessing.fast.ngrams import NgramIds, Words, length_buckets, ngram_ids, split_words
from preprocessing.labels import Labels
from preprocessing.signatures import PREDICT_NGRAMS, SERVING_DEFAULT, TRANSFORM_FEATURES
from serving.drift import reference
from serving.drift.reference import HashedReviews
from serving.predict_text import NgramSettings, call_in_batches, make_predict_text

SCORED = "texts scored"
"""The unit of the progress."""
_TEXT_SIZE = 2000
"""Maximum number of characters of a mistake that are stored."""
_BATCH = 4096
_BYTES_AT_ONCE = 8 << 20
"""Size of a batch in bytes, which limits the memory that long reviews require."""
_SCORES_AT_ONCE = 4 << 20
"""Number of probabilities of a batch, which limits the memory that many classes require."""
_STORED_CLASSES = 10
"""Number of the most probable classes whose probabilities are stored for the serving check."""


class _Batch(NamedTuple):
    """Some reviews.

    Attributes:
      examples: the serialized Examples.
      texts: their texts in UTF-8.
      labels: their labels, int64 [batch].
      hashes: the hashes of the Examples, int64 [batch].
    """

    examples: list[bytes]
    texts: list[bytes]
    labels: np.ndarray
    hashes: np.ndarray


class ScoreFiles(beam.DoFn):
    """A Beam stage that scores gzipped TFRecord files of Examples.

    Args:
      folders: CANDIDATE and, if there is one, BASELINE -> folder of the model.
      labels: the classes.
      settings: the slices.
    """

    def __init__(self, folders: Mapping[str, str], labels: Labels, settings: Evaluation):
        self._labels = labels
        self._most_kept = reference.rows(labels)
        self._folders = dict(folders)
        self._slices = tuple(settings.slices)
        self._patterns = {name: re.compile(text) for name, text in settings.patterns.items()}
        self._shared = {name: Shared() for name in folders}

    def setup(self) -> None:
        self._decoder = example_coder.ExamplesToRecordBatchDecoder()
        self._models = {
            name: self._shared[name].acquire(partial(_Model, folder, self._labels), folder)
            for name, folder in self._folders.items()
        }

    def process(self, files: Sequence[str]) -> Iterator[Scores]:
        """Score the reviews of some files in as many threads as there are cores; yield one Scores.

        Args:
          files: the paths of at least one file.

        Raises:
          InputError: a file is damaged.
          ValueError: a model returned a value that is not a probability.
          tensorflow.errors.OpError: a model failed, or a file cannot be read.
        """
        running: deque[Future[Scores]] = deque()
        scores = merge([])
        with ThreadPoolExecutor(cores()) as pool, Progress(SCORED, files[0]) as progress:
            for examples in _batches(files, _SCORES_AT_ONCE // self._labels.logits):
                running.append(pool.submit(self._score, examples))
                progress.advance(len(examples))
                if len(running) > cores():
                    scores = merge([scores, running.popleft().result()])
            yield merge([scores, *(future.result() for future in running)])

    def _score(self, serialized: np.ndarray) -> Scores:
        """Return the scores of some serialized Examples, bytes [batch]."""
        batch = self._decode(serialized)
        words = split_words(batch.texts)
        # Both models usually have the same settings, and the n-grams take most of the time.
        ngrams = cache(lambda settings: ngram_ids(words, *settings))
        predictions = {
            name: model.predict(batch.examples, ngrams) for name, model in self._models.items()
        }
        own = predictions[CANDIDATE]
        mistakes = self._mistakes(batch, own)
        scores = Scores(
            slices={
                slice_key: {
                    name: Counts.from_predictions(batch.labels[here], found[here], self._labels)
                    for name, found in predictions.items()
                }
                for slice_key, here in self._members(batch, words).items()
            },
            sampled=_sampled(batch, own),
            mistakes=most_confident(mistakes.values(), MISTAKES),
            confusions=confusion_texts(mistakes.values()),
            reference=self._kept(batch, own),
        )
        if BASELINE not in predictions:
            return scores
        served = predictions[BASELINE]
        was_right = self._labels.decide(served) == batch.labels
        return scores._replace(
            changed=_changed_answers(mistakes, was_right), served=self._kept(batch, served)
        )

    def _decode(self, serialized: np.ndarray) -> _Batch:
        decoded = self._decoder.DecodeBatch(serialized)
        columns = dict(zip(decoded.schema.names, decoded.columns, strict=True))
        labels = columns[features.LABEL].flatten().to_numpy(zero_copy_only=False).astype(np.int64)
        examples = serialized.tolist()
        return _Batch(
            examples=examples,
            texts=columns[features.TEXT].flatten().to_pylist(),
            labels=labels,
            hashes=np.fromiter(map(zlib.crc32, examples), np.int64, len(examples)),
        )

    def _mistakes(self, batch: _Batch, own: np.ndarray) -> dict[int, Mistake]:
        """Return number of a review -> the wrong answer to it, the most confident one first.

        Args:
          batch: the reviews.
          own: the scores of the candidate.
        """
        predicted = self._labels.decide(own)
        probability = self._labels.shown(own, predicted)
        doubt = -self._labels.of_label(own, predicted)
        wrong = np.flatnonzero(predicted != batch.labels)
        order = wrong[np.lexsort((batch.hashes[wrong], doubt[wrong]))]
        return {
            n: Mistake(
                doubt=float(doubt[n]),
                hash=int(batch.hashes[n]),
                text=batch.texts[n].decode("utf-8", "replace")[:_TEXT_SIZE],
                label=int(batch.labels[n]),
                predicted=int(predicted[n]),
                probability=float(probability[n]),
            )
            for n in order.tolist()
        }

    def _kept(self, batch: _Batch, scores: np.ndarray) -> HashedReviews:
        """Return the reviews that a push keeps with the model, with some scores of theirs."""
        return reference.select(
            batch.hashes, scores, texts=batch.texts, labels=batch.labels, most=self._most_kept
        )

    def _members(self, batch: _Batch, words: Words) -> dict[Slice, np.ndarray]:
        """Return slice -> whether each review is in it, bool [batch]."""
        sliced: dict[str, np.ndarray] = {
            name: self._slice_values(name, batch.examples, words) for name in self._slices
        }
        sliced |= {name: _matches(pattern, batch.texts) for name, pattern in self._patterns.items()}
        return {WHOLE: np.ones(len(batch.texts), bool)} | {
            (feature, value): column == value
            for feature, column in sliced.items()
            for value in np.unique(column).tolist()
        }

    def _slice_values(self, feature: str, examples: Sequence[bytes], words: Words) -> np.ndarray:
        """Return the value of a feature of slices for each review, str [batch]."""
        if feature == features.LENGTH_BUCKET:
            return np.array(features.LENGTH_BUCKETS, object)[length_buckets(words)]
        values = self._models[CANDIDATE].call(TRANSFORM_FEATURES, feature, examples)
        return np.array([value.decode() for value in values.ravel()], object)


def _matches(pattern: re.Pattern[str], texts: Sequence[bytes]) -> np.ndarray:
    """Return `yes` for each text in which a pattern is found, and `no` for the others."""
    found = [pattern.search(text.decode("utf-8", "replace")) is not None for text in texts]
    return np.where(found, "yes", "no").astype(object)


class _Model:
    """A loaded model. Several threads may use it at the same time."""

    def __init__(self, folder: str, labels: Labels):
        self._labels = labels
        self._loaded = tf.saved_model.load(folder)
        reads_ngrams = PREDICT_NGRAMS in self._loaded.signatures
        self._by_text = make_predict_text(self._loaded, folder) if reads_ngrams else None

    def predict(
        self, examples: Sequence[bytes], ngrams: Callable[[NgramSettings], NgramIds]
    ) -> np.ndarray:
        """Return the scores of the reviews, see `Labels.decide`, float64.

        Args:
          examples: the serialized Examples.
          ngrams: a function that returns the n-grams of the Examples' texts for given settings. It
            is only called for a model that reads nothing but n-grams.
        """
        name = self._labels.scores_name
        if self._by_text and self._by_text.ngram_settings:
            found = self._by_text.from_ngrams(ngrams(self._by_text.ngram_settings))[name]
        else:
            found = self.call(SERVING_DEFAULT, name, examples)
        # A model of another program may return the probability of two classes as a column.
        return found.reshape(-1, *self._labels.scores_shape).astype(np.float64)

    def call(self, signature: str, output: str, examples: Sequence[bytes]) -> np.ndarray:
        """Return an output of a signature for serialized Examples, shape [batch, ...].

        Raises:
          tensorflow.errors.OpError: the model failed.
        """
        [found] = call_in_batches(self._loaded.signatures[signature], examples, [output])
        return found


def _sampled(batch: _Batch, own: np.ndarray) -> list[tuple[int, str, Any]]:
    """Return the sample of a batch with the scores of the candidate, see `Scores.sampled`."""
    return [
        (int(batch.hashes[n]), digest(batch.examples[n]), _stored(own[n]))
        for n in np.argsort(batch.hashes, kind="stable")[:SAMPLE_SIZE].tolist()
    ]


def _changed_answers(mistakes: Mapping[int, Mistake], was_right: np.ndarray) -> ChangedAnswers:
    """Return the reviews that exactly one of candidate and baseline gets right.

    Args:
      mistakes: number of a review -> the wrong answer of the candidate.
      was_right: whether the answer of the baseline to each review is right, bool [batch].
    """
    is_right = np.ones(len(was_right), bool)
    is_right[list(mistakes)] = False
    newly_wrong = [mistake for n, mistake in mistakes.items() if was_right[n]]
    return ChangedAnswers(
        newly_wrong=len(newly_wrong),
        newly_right=int(np.count_nonzero(is_right & ~was_right)),
        regressions=most_confident(newly_wrong, REGRESSIONS),
    )


def _stored(scores: np.ndarray) -> Any:
    """Return the scores of one review as they are in `files.SAMPLE_FILE`."""
    if scores.ndim == 0:
        return scores.tolist()
    best = np.argsort(-scores, kind="stable")[:_STORED_CLASSES].tolist()
    return {str(label): float(scores[label]) for label in best}


def _batches(files: Sequence[str], size: int) -> Iterator[np.ndarray]:
    """Yield the serialized Examples of the files in batches, bytes [batch].

    Args:
      files: the files.
      size: the maximum number of Examples in a batch.
    """
    for examples in read(batches(files, min(size, _BATCH)).prefetch(1), files):
        batch = examples.numpy()
        sizes = np.cumsum(np.fromiter(map(len, batch), np.int64, len(batch)))
        edges = np.flatnonzero(np.diff(sizes // _BYTES_AT_ONCE)) + 1
        yield from np.split(batch, edges)
