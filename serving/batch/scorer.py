"""The model of a batch: texts to probabilities and labels, with the n-grams computed by NumPy."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from preprocessing.fast.ngrams import ngram_ids
from serving.signing.model import verified

_BYTES_AT_ONCE = 4 << 20
"""Bytes of text that the model gets together; bounds the memory of long reviews."""
_COMPARED = 64
"""Reviews of the first batch for which both signatures must have the same answer."""
_SAMPLE = (
    b"",
    b"It's GREAT!!! (well... 5/5), don't_miss it; 'quoted' & <b>bold</b>",
    "Größe ÉTÉ İstanbul Σίσυφος ΣΑΣ 日本語 \u212a".encode(),
    b"tabs\tand\nlines \x0b\x0c\x1c " + b"antidisestablishmentarianism " * 3 + b"x" * 70,
)


class Scores(NamedTuple):
    """The sentiment of reviews: `probability` of being positive float32, `label` int64, [batch]."""

    probability: np.ndarray
    label: np.ndarray


class Scorer:
    """A pushed model, loaded once.

    A model with the signature `predict_ngrams` gets ids of n-grams that NumPy computed, which is
    several times as fast as `predict_text`. A model may have been exported by a version of the code
    with other words or n-grams. So both signatures are compared, on a sample of difficult texts and
    on the first reviews; if they differ in a bit, only `predict_text` is used.
    """

    def __init__(self, model_folder: str, public_key: bytes | None = None):
        """Load the model from a local folder or a URL; see `serving.predictor.Predictor`."""
        with verified(model_folder, public_key) as folder:
            self._model = tf.saved_model.load(folder)
        self._by_text = self._model.signatures["predict_text"]
        self._by_ngrams = self._model.signatures.get("predict_ngrams")
        self._settings: list[int] = []
        self._compared = False
        if self._by_ngrams is not None:
            self._settings = self._model.ngram_settings.numpy().tolist()
            self._compare(_SAMPLE)

    @property
    def is_fast(self) -> bool:
        """Whether the n-grams are computed by NumPy."""
        return self._by_ngrams is not None

    def score(self, texts: Sequence[bytes]) -> Scores:
        """Return the sentiment of each text, in UTF-8. Several threads may call this method."""
        if self.is_fast and not self._compared:
            self._compare(texts[:_COMPARED])
            self._compared = True
        method = self._score_ngrams if self.is_fast else self._score_texts
        parts = [method(part) for part in _parts(texts)]
        if not parts:
            return Scores(np.zeros(0, np.float32), np.zeros(0, np.int64))
        return Scores(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def _compare(self, texts: Sequence[bytes]) -> None:
        if not texts:
            return
        pairs = zip(self._score_texts(texts), self._score_ngrams(texts), strict=True)
        if not all(np.array_equal(by_text, by_ngrams) for by_text, by_ngrams in pairs):
            logging.warning(
                "The model was exported by a version of this code with other n-grams; it is read "
                "through the signature predict_text, which is slower. Push a new model"
            )
            self._by_ngrams = None

    def _score_texts(self, texts: Sequence[bytes]) -> Scores:
        return _scores(self._by_text(texts=tf.constant(list(texts), tf.string)))

    def _score_ngrams(self, texts: Sequence[bytes]) -> Scores:
        longest, buckets = self._settings
        ids, row_lengths = ngram_ids(texts, longest, buckets)
        signature: Any = self._by_ngrams
        return _scores(
            signature(ngrams=tf.constant(ids, tf.int64), row_lengths=tf.constant(row_lengths))
        )


def fingerprint(model_folder: str) -> str:
    """Return the folder of a model, with the size and time of its graph."""
    status = tf.io.gfile.stat(f"{model_folder}/saved_model.pb")
    return f"{model_folder},bytes:{status.length},modified:{status.mtime_nsec}"


def _scores(outputs: dict[str, tf.Tensor]) -> Scores:
    return Scores(outputs["probability"].numpy(), outputs["label"].numpy())


def _parts(texts: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    start = size = 0
    for end, text in enumerate(texts):
        if size + len(text) > _BYTES_AT_ONCE and end > start:
            yield texts[start:end]
            start, size = end, 0
        size += len(text)
    if start < len(texts):
        yield texts[start:]
