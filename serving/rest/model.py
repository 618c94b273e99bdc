"""A loaded model with its signatures, and the check that it can answer requests."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from google.protobuf.json_format import MessageToDict
from tensorflow.core.framework.types_pb2 import DT_STRING

from core.files import without_magic
from preprocessing import features
from preprocessing.fast.ngrams import NgramIds
from serving.predict_text import PREDICT_NGRAMS, PREDICT_TEXT, Outputs, PredictText

_SAMPLE = b"A good phone: it works."
_IN_THE_CALLER = -1
"""The number of threads with which a session runs all operations in the thread of its caller."""


class BrokenModelError(Exception):
    """A model that cannot answer requests; the message has one line."""


class LoadedModel:
    """A version of the model in memory, after a first call of its signatures.

    It runs in a session of TensorFlow 1, as in TensorFlow Serving, because only a session can
    compute in the thread of its caller. The operations of a review are so short that other threads
    would double the latency.

    Attributes:
      version: the number that is the name of its folder.
      inputs: signature -> the name of its input, for those that the server can call: one input, a
        list of strings.
      per_review: the signatures in which the outputs of a review are independent of the other
        reviews of a call, so that requests can share the call. A padded output depends on the
        longest review.
      signature_defs: all signatures as JSON, in the form that protocol buffers have there.
    """

    def __init__(self, folder: str):
        """Load the model and call it once, because first calls take longer.

        Args:
          folder: a version in the serving folder.

        Raises:
          BrokenModelError: the folder contains no SavedModel, or the model cannot answer requests.
        """
        self.version = int(os.path.basename(folder.rstrip("/")))
        try:
            session, definitions = _load(folder)
        except Exception as error:  # a damaged file can raise anything
            raise BrokenModelError(f"cannot be loaded: {_one_line(error)}") from error
        self.signature_defs = {
            name: MessageToDict(definition, preserving_proto_field_name=True)
            for name, definition in sorted(definitions.items())
        }
        self.inputs = {
            name: next(iter(definition.inputs))
            for name, definition in sorted(definitions.items())
            if [_shape(info) for info in definition.inputs.values()] == [(DT_STRING, 1)]
        }
        self.per_review = {
            name
            for name in self.inputs
            if all(_shape(info)[1] == 1 for info in definitions[name].outputs.values())
        }
        if PREDICT_TEXT not in self.inputs:
            raise BrokenModelError(
                f"has no signature {PREDICT_TEXT} with a list of strings as its input; it has "
                f"{', '.join(self.inputs) or 'none'}"
            )
        self._functions = {
            name: _text_function(session, definitions[name], input_)
            for name, input_ in self.inputs.items()
        }
        self._warm_up()
        by_ngrams = _ngram_function(session, definitions.get(PREDICT_NGRAMS))
        try:
            self._functions[PREDICT_TEXT] = PredictText(
                self._functions[PREDICT_TEXT], by_ngrams, folder
            )
        except Exception as error:  # whatever its operations raise
            raise BrokenModelError(f"fails in {PREDICT_NGRAMS}: {_one_line(error)}") from error

    def call(self, signature: str, texts: Sequence[bytes]) -> Outputs:
        """Return the outputs of a signature of `inputs`, each of shape [reviews, ...]."""
        return self._functions[signature](texts)

    def _warm_up(self) -> None:
        import tensorflow as tf

        text = tf.train.Feature(bytes_list=tf.train.BytesList(value=[_SAMPLE]))
        example = tf.train.Example(features=tf.train.Features(feature={features.TEXT: text}))
        for name, input_ in self.inputs.items():
            sample = _SAMPLE if input_ == "texts" else example.SerializeToString()
            try:
                outputs = self.call(name, [sample])
            except Exception as error:  # its operations can raise any error
                raise BrokenModelError(f"fails in {name}: {_one_line(error)}") from error
            if name == PREDICT_TEXT:
                _check_prediction(outputs)


def _load(folder: str) -> tuple[Any, dict[str, Any]]:
    """Return a session with the model, and its `SignatureDef`s."""
    import tensorflow as tf

    config = tf.compat.v1.ConfigProto(
        inter_op_parallelism_threads=_IN_THE_CALLER, intra_op_parallelism_threads=1
    )
    session = tf.compat.v1.Session(graph=tf.Graph(), config=config)
    with session.graph.as_default():
        path = without_magic(folder)
        graph = tf.compat.v1.saved_model.loader.load(session, ["serve"], path)
    return session, dict(graph.signature_def)


def _text_function(
    session: Any, definition: Any, name: str
) -> Callable[[Sequence[bytes]], Outputs]:
    """Return a signature with one input as a function."""
    call = _callable(session, definition, [name])
    # An array of bytes would lose zeros at the end of a text.
    return lambda texts: call(np.array(texts, object))


def _ngram_function(session: Any, definition: Any) -> Callable[[NgramIds], Outputs] | None:
    """Return the signature `predict_ngrams` as a function, if the model has it."""
    if definition is None:
        return None
    call = _callable(session, definition, ["ngrams", "row_lengths"])
    return lambda grams: call(*grams)


def _callable(session: Any, definition: Any, inputs: Sequence[str]) -> Callable[..., Outputs]:
    outputs = {key: info.name for key, info in definition.outputs.items()}
    function: Callable[..., Outputs] = session.make_callable(
        outputs, [definition.inputs[name].name for name in inputs]
    )
    return function


def _check_prediction(outputs: Mapping[str, np.ndarray]) -> None:
    shapes = {name: outputs[name].shape for name in ("probability", "label") if name in outputs}
    if shapes != {"probability": (1,), "label": (1,)}:
        raise BrokenModelError(
            f"returns {sorted(outputs)} from {PREDICT_TEXT} instead of a probability and a label "
            "for each review"
        )
    probability = outputs["probability"][0]
    # Also false for NaN.
    if not 0 <= probability <= 1:
        raise BrokenModelError(f"returns the probability {probability} from {PREDICT_TEXT}")


def _shape(info: Any) -> tuple[int, int]:
    """Return the dtype and the rank of a tensor; -1 for an unknown rank."""
    shape = info.tensor_shape
    return info.dtype, -1 if shape.unknown_rank else len(shape.dim)


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:300]}"
