"""A loaded model with its signatures, which is checked before it answers requests."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from google.protobuf.json_format import MessageToDict

from core.digests import check_digests
from preprocessing import features
from preprocessing.labels import model_labels
from preprocessing.signatures import PREDICT_NGRAMS, PREDICT_TEXT
from serving.predict_text import SAMPLE, Outputs, PredictText, check_outputs, check_probabilities

_MAX_CHARACTERS = 300
"""Greatest number of characters of TensorFlow's message about an input that cannot be read."""
_NO_EXAMPLE = "Could not parse example input; set signature_name to predict_text for texts"
_UNREADABLE = "the model cannot read the input"
_NOT_PARSED = "Can't parse serialized Example"
_IN_THE_CALLER = -1
"""The number of threads with which a session runs all operations in the thread of its caller."""


class UnreadableInputError(ValueError):
    """Input that a model cannot read, such as bytes that are no Example."""


class LoadedModel:
    """A version of the model in memory, after a first call of its signatures.

    The model runs in a session of TensorFlow 1, as in TensorFlow Serving, because only a session
    can compute in the thread of its caller. The operations of a review are so short that other
    threads would double the latency.

    Attributes:
      version: the number that is the name of the version's folder.
      labels: the classes of this version.
      inputs: signature -> the name of its input. It has only the signatures that the server can
        call: those with one input, a list of strings.
      per_review: the signatures in which the outputs of a review are independent of the other
        reviews of a call, so that requests can share the call. In the other signatures an output
        may be padded to the longest review, so a dimension has no fixed size.
      signature_defs: signature -> its definition, in the JSON form of protocol buffers.
    """

    def __init__(self, folder: str):
        """Load a version, and call its signatures for predictions once.

        First calls take longer.

        Args:
          folder: the folder of the version or its URL, whose name is a number.

        Raises:
          ValueError: the model has no signature `predict_text`, or returns no probability of each
            of its classes.
          InputError: the file of the classes is damaged, a file is not that of the push, or a
            probability is not in [0, 1].
          Exception: the model is damaged, or cannot answer requests for another reason.
        """
        self.version = int(os.path.basename(folder.rstrip("/")))
        check_digests(folder)
        self.labels = model_labels(folder)
        self._session, definitions = _load(folder)
        self._definitions = dict(sorted(definitions.items()))
        self.signature_defs = {
            name: MessageToDict(definition, preserving_proto_field_name=True)
            for name, definition in self._definitions.items()
        }
        self.inputs = {
            name: next(iter(definition.inputs))
            for name, definition in self._definitions.items()
            if [_shape(info) for info in definition.inputs.values()] == [(tf.string, 1)]
        }
        self.per_review = {
            name
            for name in self.inputs
            if all(_is_per_review(info) for info in self._definitions[name].outputs.values())
        }
        if PREDICT_TEXT not in self.inputs:
            raise ValueError(f"no signature {PREDICT_TEXT} with a list of strings as its input")
        self._functions = {name: self._function(name, key) for name, key in self.inputs.items()}
        self._warm_up()
        by_ngrams = None
        if PREDICT_NGRAMS in self._definitions:
            by_ngrams = self._callable(PREDICT_NGRAMS, "ngrams", "row_lengths")
        by_text = self._functions[PREDICT_TEXT]
        self._functions[PREDICT_TEXT] = PredictText(by_text, by_ngrams, folder)

    def call(self, signature: str, texts: Sequence[bytes]) -> Outputs:
        """Return the outputs of a signature.

        Args:
          signature: one of `inputs`.
          texts: the values of its input: texts in UTF-8, or serialized Examples.

        Returns:
          Output -> its values, each of shape [texts, ...].

        Raises:
          UnreadableInputError: the signature cannot read one of the texts.
          tensorflow.errors.OpError: the model failed.
        """
        try:
            return self._functions[signature](texts)
        # TensorFlow's message quotes the input. So the message cannot be decoded if the input is
        # not UTF-8, it ends at a zero byte of the input, and it is as long as the input.
        except UnicodeDecodeError as error:
            is_example = self.inputs[signature] != "texts"
            raise UnreadableInputError(_NO_EXAMPLE if is_example else _UNREADABLE) from error
        except tf.errors.InvalidArgumentError as error:
            is_example = "parse example" in error.message
            raise UnreadableInputError(_NO_EXAMPLE if is_example else _reason(error)) from error

    def _function(self, signature: str, key: str) -> Callable[[Sequence[bytes]], Outputs]:
        call = self._callable(signature, key)
        # An array of bytes would lose zeros at the end of a text.
        return lambda texts: call(np.array(texts, object))

    def _callable(self, signature: str, *inputs: str) -> Callable[..., Outputs]:
        definition = self._definitions[signature]
        outputs = {key: info.name for key, info in definition.outputs.items()}
        function: Callable[..., Outputs] = self._session.make_callable(
            outputs, [definition.inputs[key].name for key in inputs]
        )
        return function

    def _warm_up(self) -> None:
        text = tf.train.Feature(bytes_list=tf.train.BytesList(value=[SAMPLE]))
        example = tf.train.Example(features=tf.train.Features(feature={features.TEXT: text}))
        for name, key in self.inputs.items():
            if self._definitions[name].method_name == tf.saved_model.CLASSIFY_METHOD_NAME:
                # `:classify` calls another signature, and this call would take a second.
                continue
            sample = SAMPLE if key == "texts" else example.SerializeToString()
            # Not `call`, because an error here is an error of the model and not of its input.
            self._functions[name]([sample])
        outputs = self._functions[PREDICT_TEXT]([SAMPLE])
        [_] = outputs["label"]
        shapes = {name: tf.TensorShape(values.shape) for name, values in outputs.items()}
        check_outputs(shapes, self.labels)
        check_probabilities(outputs[self.labels.scores_name])


def _reason(error: tf.errors.InvalidArgumentError) -> str:
    # The lines that follow the reason in TensorFlow's message name operations.
    lines = error.message.partition("[[{{")[0].strip().splitlines()
    if not lines:
        return _UNREADABLE
    reason = lines[-1][:_MAX_CHARACTERS]
    # TensorFlow's only reason for a list of several texts, which is a valid Example.
    return reason.replace(_NOT_PARSED, f"{_NOT_PARSED}, or the feature has too many values")


def _load(folder: str) -> tuple[Any, dict[str, Any]]:
    config = tf.compat.v1.ConfigProto(
        inter_op_parallelism_threads=_IN_THE_CALLER, intra_op_parallelism_threads=1
    )
    session = tf.compat.v1.Session(graph=tf.Graph(), config=config)
    with session.graph.as_default():
        graph = tf.compat.v1.saved_model.loader.load(session, ["serve"], folder)
    return session, dict(graph.signature_def)


def _is_per_review(info: Any) -> bool:
    """Return whether the first dimension of a tensor is the only one without a fixed size."""
    shape = info.tensor_shape
    return not shape.unknown_rank and all(dim.size >= 0 for dim in shape.dim[1:])


def _shape(info: Any) -> tuple[tf.DType, int]:
    """Return the dtype and the rank of a tensor; -1 for an unknown rank."""
    shape = info.tensor_shape
    return tf.as_dtype(info.dtype), -1 if shape.unknown_rank else len(shape.dim)
