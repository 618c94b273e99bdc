"""The models of an evaluation: Examples to predictions, and to the features of slices.

The predictions are those of the signature in TFMA's configuration. For a model that reads n-grams,
NumPy computes the n-grams once for all models of the evaluation; likewise it computes the length of
a review from the number of its n-grams. Both are compared with the model's own signatures first, on
texts of all lengths and on the first reviews. If they differ, the signatures are used.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from absl import logging

from components.evaluator.slices import Column, Features, dense_column
from preprocessing import features
from preprocessing.fast.encode import encode_examples
from preprocessing.fast.ngrams import NgramIds, length_buckets, ngram_ids
from serving.predict_text import (
    PREDICT_NGRAMS,
    PREDICT_TEXT,
    NgramSettings,
    PredictText,
    predict_text_of,
)

PROBABILITY, EXAMPLE = "probability", "serving_default"
_GRAPH_BATCH = 512
"""Examples that a signature gets together. A sequence model has 400 KB of activations for each."""
_COMPARED = 64
"""The first reviews that are compared."""
_LENGTHS = (*range(1024), *(2**power for power in range(10, 17)))
"""Words of the texts that are compared, so that all ranges of a length bucket are met."""
_BUCKETS = [np.array([name.encode()], object) for name in features.LENGTH_BUCKETS]


class EvaluatedModel(NamedTuple):
    """A model of an evaluation.

    Attributes:
      name: its name in the keys of metrics.
      folder: the SavedModel.
      signature: serialized Examples -> predictions.
      prediction: the output of `signature` that is evaluated.
      transforms: signature -> those of its outputs that are features of slices.
      signatures: the names of all signatures.
    """

    name: str
    folder: str
    signature: str
    prediction: str
    transforms: dict[str, list[str]]
    signatures: frozenset[str]


class Scored(NamedTuple):
    """The predictions of a model, float64 [batch], and its features of slices."""

    predictions: np.ndarray
    features: Features


class Models:
    """The loaded models of an evaluation. Several threads may use them."""

    def __init__(self, models: Sequence[EvaluatedModel]):
        self._models = {model.name: _Model(model) for model in models}
        self._is_checked = False
        self._lock = threading.Lock()

    def score(self, examples: Sequence[bytes], texts: Sequence[bytes] | None) -> dict[str, Scored]:
        """Return what each model computes.

        Args:
          examples: serialized Examples.
          texts: their feature TEXT; None if some have no such feature, or several values.

        Raises:
          ValueError: a prediction is not a number.
        """
        with self._lock:
            if not self._is_checked and texts:
                for model in self._models.values():
                    model.check(examples[:_COMPARED], texts[:_COMPARED])
                self._is_checked = True
        ngrams: dict[NgramSettings, NgramIds] = {}
        if texts is not None:
            models = self._models.values()
            wanted = {model.ngrams for model in models if model.ngrams}
            if not wanted and any(model.is_length_fast for model in models):
                wanted = {_WORDS}
            ngrams = {settings: ngram_ids(texts, *settings) for settings in wanted}
        return {name: model.score(examples, ngrams) for name, model in self._models.items()}


_WORDS: NgramSettings = (1, 2, ())
"""Settings for texts whose number of words is all that is needed."""


class _Model:
    """One loaded model."""

    def __init__(self, model: EvaluatedModel):
        self._model = model
        self._loaded = tf.saved_model.load(model.folder)
        signatures = self._loaded.signatures
        self._by_ngrams: PredictText | None = None
        if {PREDICT_TEXT, PREDICT_NGRAMS} <= model.signatures and (
            model.signature,
            model.prediction,
        ) == (EXAMPLE, PROBABILITY):
            self._by_ngrams = predict_text_of(self._loaded, model.folder)
        self._predict = _with_outputs(signatures[model.signature], [model.prediction])
        self._transforms = {
            name: _with_outputs(signatures[name], outputs)
            for name, outputs in model.transforms.items()
        }
        self.is_length_fast = any(
            features.LENGTH_BUCKET in outputs for outputs in model.transforms.values()
        )
        self._others = {
            name: _with_outputs(signatures[name], rest)
            for name, outputs in model.transforms.items()
            if (rest := [output for output in outputs if output != features.LENGTH_BUCKET])
        }

    @property
    def ngrams(self) -> NgramSettings | None:
        """The settings of the n-grams from which the model predicts; None: it reads Examples."""
        found = self._by_ngrams
        return found.ngram_settings if found and found.is_fast else None

    def check(self, examples: Sequence[bytes], texts: Sequence[bytes]) -> None:
        """Use the signatures instead of NumPy where they do not return the same."""
        made = [b"a " * words for words in _LENGTHS]
        examples = [*examples, *encode_examples({features.TEXT: made})]
        texts = [*texts, *made]
        if self.ngrams is not None:
            assert self._by_ngrams is not None
            ngrams = ngram_ids(texts, *self.ngrams)
            found = self._by_ngrams.from_ngrams(ngrams)[PROBABILITY]
            wanted = self._from_graph(self._predict, examples)[PROBABILITY].reshape(-1)
            # TensorFlow's sigmoid depends in the last bit on the size of the batch.
            if not np.allclose(found, wanted, rtol=0, atol=1e-6):
                self._warn(self._model.signature)
                self._by_ngrams = None
        if self.is_length_fast:
            lengths = length_buckets(ngram_ids(texts, *_WORDS).row_lengths, _WORDS[0])
            buckets = np.concatenate(_BUCKETS)[lengths]
            for name, function in self._transforms.items():
                outputs = self._from_graph(function, examples)
                if features.LENGTH_BUCKET in outputs and not np.array_equal(
                    outputs[features.LENGTH_BUCKET].reshape(-1), buckets
                ):
                    self._warn(name)
                    self.is_length_fast = False

    def score(self, examples: Sequence[bytes], ngrams: dict[NgramSettings, NgramIds]) -> Scored:
        """Return what the model computes, from the n-grams where that is possible."""
        if self.ngrams in ngrams:
            assert self._by_ngrams is not None and self.ngrams is not None
            predictions = self._by_ngrams.from_ngrams(ngrams[self.ngrams])[PROBABILITY]
        else:
            predictions = self._from_graph(self._predict, examples)[self._model.prediction]
        predictions = predictions.reshape(-1).astype(np.float64)
        if len(predictions) != len(examples) or np.isnan(predictions).any():
            raise ValueError(
                f"{self._model.folder}: {self._model.signature} must return one number for each "
                "Example"
            )
        is_fast = self.is_length_fast and bool(ngrams)
        found: Features = {}
        for function in (self._others if is_fast else self._transforms).values():
            for name, values in self._from_graph(function, examples).items():
                found[name] = dense_column(values)
        if is_fast:
            (longest, _, openings), (_, row_lengths) = next(iter(ngrams.items()))
            buckets = Column(length_buckets(row_lengths, longest, openings), _BUCKETS)
            found[features.LENGTH_BUCKET] = buckets
        return Scored(predictions, found)

    def _from_graph(self, function: Any, examples: Sequence[bytes]) -> dict[str, np.ndarray]:
        parts = [
            function(tf.constant(examples[start : start + _GRAPH_BATCH], tf.string))
            for start in range(0, len(examples), _GRAPH_BATCH)
        ]
        return {name: np.concatenate([part[name].numpy() for part in parts]) for name in parts[0]}

    def _warn(self, signature: str) -> None:
        logging.warning(
            "%s: %s returns other values than NumPy; the signature is used, which is slower. "
            "Another version of this code exported the model",
            self._model.folder,
            signature,
        )


def _with_outputs(signature: Any, outputs: Sequence[str]) -> Any:
    """Return a function that computes some of the outputs only; TensorFlow prunes the others."""

    @tf.function(autograph=False, input_signature=[tf.TensorSpec([None], tf.string)])
    def function(examples: tf.Tensor) -> dict[str, tf.Tensor]:
        found = signature(examples)
        return {name: found[name] for name in outputs}

    return function
