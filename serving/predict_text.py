"""The signature `predict_text`; compiled code computes the n-grams if the model permits it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from core.digests import check_digests
from core.errors import InputError, UserError, cause
from preprocessing.fast.ngrams import DIFFICULT_TEXTS, NgramIds, ngram_ids, split_words
from preprocessing.labels import LABELS_FILE, Labels, model_labels
from preprocessing.signatures import PREDICT_NGRAMS, PREDICT_TEXT

Outputs = Mapping[str, np.ndarray]
"""Output of a signature -> its values. Those of `predict_text` are `label`, int64 [batch]; and for
two classes `probability`, that of the second class, float32 [batch]; for more `probabilities`,
float32 [batch, classes], and the names `class`, bytes [batch]."""

_GRAPH_BATCH = 512
"""Number of reviews in one call of a signature that computes their features. A sequence model has
400 KB of activations for each review."""
_SETTINGS = "ngram_settings/.ATTRIBUTES/VARIABLE_VALUE"
_CHARACTERS = "character_ngrams/.ATTRIBUTES/VARIABLE_VALUE"
"""The keys of the settings in the variables of a model, see `trainer_module.export.save`."""
SAMPLE = b"A good phone: it works."
"""A text that any model can answer."""


class NgramSettings(NamedTuple):
    """The settings of a model's n-grams: the arguments of `ngram_ids` after the words."""

    longest: int
    buckets: int
    openings: tuple[int, ...]
    characters: tuple[int, ...]


class PredictText:
    """A function from texts to the outputs of `predict_text`.

    Compiled code computes the ids of n-grams several times as fast as the operations of the model.
    But the version of the code that exported the model may have had other words or n-grams. So both
    signatures are compared on a sample of difficult texts. If their outputs are not equal bit for
    bit, only `predict_text` is used.

    Attributes:
      ngram_settings: the settings of the model's n-grams; None if the model computes them.
    """

    def __init__(
        self,
        by_text: Callable[[Sequence[bytes]], Outputs],
        by_ngrams: Callable[..., Outputs] | None,
        folder: str,
    ):
        """Compare the two signatures of a model.

        Args:
          by_text: the signature `predict_text`.
          by_ngrams: the signature `predict_ngrams`, whose arguments are the fields of `NgramIds`;
            None if the model lacks it.
          folder: the folder of the SavedModel, whose variables contain the settings of n-grams.

        Raises:
          tensorflow.errors.OpError: the variables cannot be read.
        """
        self._by_text = by_text
        self._by_ngrams = by_ngrams
        self.ngram_settings: NgramSettings | None = None
        if by_ngrams is None:
            return
        variables = tf.train.load_checkpoint(f"{folder}/variables/variables")
        longest, buckets, *openings = variables.get_tensor(_SETTINGS).tolist()
        # Models of earlier versions have no n-grams of characters.
        has_characters = variables.has_tensor(_CHARACTERS)
        characters = variables.get_tensor(_CHARACTERS).tolist() if has_characters else []
        self.ngram_settings = NgramSettings(longest, buckets, tuple(openings), tuple(characters))
        wanted, found = by_text(DIFFICULT_TEXTS), self(DIFFICULT_TEXTS)
        if not all(np.array_equal(wanted[name], found[name]) for name in wanted):
            logging.warning(
                "The model was exported by a version of this code with other n-grams. Its "
                "signature predict_text is used, which is slower; push a new model"
            )
            self.ngram_settings = None

    def __call__(self, texts: Sequence[bytes]) -> Outputs:
        """Return the outputs for texts. Several threads may call this method at once.

        Args:
          texts: texts in UTF-8.

        Raises:
          tensorflow.errors.OpError: the model failed.
        """
        if self.ngram_settings is None:
            return self._by_text(texts)
        return self.from_ngrams(ngram_ids(split_words(texts), *self.ngram_settings))

    def from_ngrams(self, ngrams: NgramIds) -> Outputs:
        """Return the outputs for n-grams.

        Args:
          ngrams: the n-grams, which were computed with the `ngram_settings`.

        Raises:
          tensorflow.errors.OpError: the model failed.
        """
        assert self._by_ngrams is not None
        return self._by_ngrams(*ngrams)


def check_outputs(shapes: Mapping[str, tf.TensorShape], labels: Labels) -> None:
    """Check that `predict_text` returns a probability of each class.

    The file of the classes may belong to another model, such as after an incomplete copy.

    Args:
      shapes: output of the signature -> its shape, some sizes of which may be unknown.
      labels: the classes of the model.

    Raises:
      ValueError: the output is missing, or has another shape.
    """
    shape = shapes.get(labels.scores_name)
    if shape is None or not shape.is_compatible_with((1, *labels.scores_shape)):
        raise ValueError(
            f"{PREDICT_TEXT} does not return `{labels.scores_name}` of {labels.number} classes, "
            f"the number of names in {LABELS_FILE}"
        )


def check_probabilities(scores: np.ndarray) -> None:
    """Check that the scores of a model are probabilities.

    Args:
      scores: the scores of some texts, see `Labels.decide`.

    Raises:
      InputError: a score is not in [0, 1].
    """
    # The comparison is also false for NaN.
    wrong = [score for score in np.ravel(scores).tolist() if not 0 <= score <= 1]
    if wrong:
        raise InputError(f"{PREDICT_TEXT} returns the probability {wrong[0]}")


def load_predict_text(folder: str) -> PredictText:
    """Load a pushed model; return its function from texts to predictions.

    Args:
      folder: the folder of the version, or its URL.

    Raises:
      UserError: the model cannot be loaded, or a file of it is not that of the push.
    """
    try:
        check_digests(folder)
        return make_predict_text(tf.saved_model.load(folder), folder)
    except Exception as error:  # a damaged file can raise any exception
        raise UserError(
            f"{folder}: the model cannot be loaded ({cause(error)}). Push the model again, or "
            "remove this version"
        ) from error


def make_predict_text(model: Any, folder: str) -> PredictText:
    """Return the function of a loaded model from texts to predictions.

    Args:
      model: what `tf.saved_model.load` returned.
      folder: the folder of the model.

    Raises:
      KeyError: the model lacks a signature.
      ValueError: the model returns no probability of each of its classes.
      InputError: the file of the classes is damaged.
      OSError: the file of the classes cannot be read.
      tensorflow.errors.OpError: the model failed, or its variables cannot be read.
    """
    outputs = model.signatures[PREDICT_TEXT].structured_outputs
    check_outputs({name: spec.shape for name, spec in outputs.items()}, model_labels(folder))

    # The closures keep a reference to the model, without which its variables would be deleted.

    def by_text(texts: Sequence[bytes]) -> Outputs:
        signature = model.signatures[PREDICT_TEXT]
        names = tuple(signature.structured_outputs)
        found = call_in_batches(signature, texts, names)
        return dict(zip(names, found, strict=True))

    def by_ngrams(ids: np.ndarray, row_lengths: np.ndarray) -> Outputs:
        inputs = {"ngrams": tf.constant(ids), "row_lengths": tf.constant(row_lengths)}
        found = model.signatures[PREDICT_NGRAMS](**inputs)
        return {name: tensor.numpy() for name, tensor in found.items()}

    has_ngrams = PREDICT_NGRAMS in model.signatures
    return PredictText(by_text, by_ngrams if has_ngrams else None, folder)


def call_in_batches(
    signature: Any, values: Sequence[bytes], names: Sequence[str]
) -> list[np.ndarray]:
    """Return outputs of a signature, in batches that bound the memory of the model.

    Args:
      signature: a signature of a loaded model with one input, string [batch].
      values: texts or serialized Examples.
      names: the names of the outputs to return.

    Returns:
      An array for each of `names`, of the dtype of the output, shape [values, ...].

    Raises:
      tensorflow.errors.OpError: the model cannot read a value.
    """
    parts = []
    for start in range(0, max(len(values), 1), _GRAPH_BATCH):
        found = signature(tf.constant(list(values[start : start + _GRAPH_BATCH]), tf.string))
        parts.append([found[name].numpy() for name in names])
    return [np.concatenate(columns) for columns in zip(*parts, strict=True)]
