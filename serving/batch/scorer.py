"""The model of a batch: texts to probabilities and labels, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from serving.predict_text import load_predict_text

_BYTES_AT_ONCE = 4 << 20
"""Most bytes of text in one call of the model, to limit the memory for long reviews."""


class Scores(NamedTuple):
    """The sentiment of reviews: `probability` of being positive float32, `label` int64, [batch]."""

    probability: np.ndarray
    label: np.ndarray


class Scorer:
    """A pushed model, loaded once."""

    def __init__(self, model_folder: str):
        """Load the model from a local folder or a URL; see `load_predict_text`."""
        self._predict = load_predict_text(model_folder)

    @property
    def is_fast(self) -> bool:
        """Whether NumPy computes the n-grams."""
        return self._predict.is_fast

    def score(self, texts: Sequence[bytes]) -> Scores:
        """Return the sentiment of each text, in UTF-8. Several threads may call this method."""
        parts = [self._predict(part) for part in _parts(texts)]
        if not parts:
            return Scores(np.zeros(0, np.float32), np.zeros(0, np.int64))
        return Scores(*(np.concatenate([part[name] for part in parts]) for name in Scores._fields))


def fingerprint(model_folder: str) -> str:
    """Return the folder of a model, with the size and time of its graph."""
    status = tf.io.gfile.stat(f"{model_folder}/saved_model.pb")
    return f"{model_folder},bytes:{status.length},modified:{status.mtime_nsec}"


def _parts(texts: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    start = size = 0
    for end, text in enumerate(texts):
        if size + len(text) > _BYTES_AT_ONCE and end > start:
            yield texts[start:end]
            start, size = end, 0
        size += len(text)
    if start < len(texts):
        yield texts[start:]
