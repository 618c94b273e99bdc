"""A loaded model with its signatures, and the check that it can answer requests."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from preprocessing import features

PREDICT_TEXT = "predict_text"
_SAMPLE = b"A good phone: it works."


class BrokenModelError(Exception):
    """A model that cannot answer requests; the message has one line."""


class Signature(NamedTuple):
    """A signature that the server can call: one input, a list of strings.

    Attributes:
      input: name of the input.
      per_review: whether the outputs of a review are independent of the other reviews of a call, so
        that requests can share the call. A padded output depends on the longest review.
    """

    input: str
    per_review: bool


class LoadedModel:
    """A version of the model in memory, after a first call of its signatures.

    Attributes:
      version: the number that is the name of its folder.
      signatures: name -> signature, those that the server can call.
      signature_defs: all signatures as TensorFlow Serving describes them in its metadata.
    """

    def __init__(self, folder: str):
        """Load the model and call it once, because first calls take longer.

        Raises:
          BrokenModelError: it is not a SavedModel, or lacks what a pushed model has.
        """
        import tensorflow as tf

        self.version = int(os.path.basename(folder.rstrip("/")))
        try:
            self._model = tf.saved_model.load(folder)
            self.signature_defs = _signature_defs(folder)
        except Exception as error:  # a damaged file can raise anything
            raise BrokenModelError(f"cannot be loaded: {_one_line(error)}") from error
        self._functions = dict(self._model.signatures)
        self.signatures = {
            name: signature
            for name, function in self._functions.items()
            if (signature := _signature(function)) is not None
        }
        self._warm_up()

    def call(self, signature: str, texts: Sequence[bytes]) -> dict[str, np.ndarray]:
        """Return the outputs of a signature of `signatures`, each of shape [reviews, ...]."""
        import tensorflow as tf

        name = self.signatures[signature].input
        outputs = self._functions[signature](**{name: tf.constant(list(texts), tf.string)})
        return {key: value.numpy() for key, value in outputs.items()}

    def _warm_up(self) -> None:
        import tensorflow as tf

        if PREDICT_TEXT not in self.signatures:
            raise BrokenModelError(
                f"has no signature {PREDICT_TEXT} with a list of strings as its input; it has "
                f"{', '.join(sorted(self._functions)) or 'none'}"
            )
        text = tf.train.Feature(bytes_list=tf.train.BytesList(value=[_SAMPLE]))
        example = tf.train.Example(features=tf.train.Features(feature={features.TEXT: text}))
        for name, signature in self.signatures.items():
            sample = _SAMPLE if signature.input == "texts" else example.SerializeToString()
            try:
                outputs = self.call(name, [sample])
            except Exception as error:  # whatever its operations raise
                raise BrokenModelError(f"{name} fails: {_one_line(error)}") from error
            if name == PREDICT_TEXT:
                _check_prediction(outputs)


def _check_prediction(outputs: Mapping[str, np.ndarray]) -> None:
    shapes = {name: outputs[name].shape for name in ("probability", "label") if name in outputs}
    if shapes != {"probability": (1,), "label": (1,)}:
        raise BrokenModelError(
            f"{PREDICT_TEXT} returns {sorted(outputs)} instead of a probability and a label for "
            "each review"
        )
    probability = outputs["probability"][0]
    # Also false for NaN.
    if not 0 <= probability <= 1:
        raise BrokenModelError(f"{PREDICT_TEXT} returns the probability {probability}")


def _signature(function: Any) -> Signature | None:
    import tensorflow as tf

    _, inputs = function.structured_input_signature
    if len(inputs) != 1:
        return None
    [(name, spec)] = inputs.items()
    if spec.dtype != tf.string or spec.shape.rank != 1:
        return None
    shapes = [output.shape for output in function.structured_outputs.values()]
    return Signature(name, all(shape.rank == 1 for shape in shapes))


def _signature_defs(folder: str) -> dict[str, Any]:
    """Return the signatures as the JSON that Protocol Buffers make of `SignatureDef`s."""
    import tensorflow as tf
    from tensorflow.core.protobuf import saved_model_pb2

    saved = saved_model_pb2.SavedModel()
    with tf.io.gfile.GFile(f"{folder}/saved_model.pb", "rb") as file:
        saved.ParseFromString(file.read())
    [graph] = [graph for graph in saved.meta_graphs if "serve" in graph.meta_info_def.tags]
    return {
        name: {
            "inputs": {key: _tensor_info(info) for key, info in definition.inputs.items()},
            "outputs": {key: _tensor_info(info) for key, info in definition.outputs.items()},
            "method_name": definition.method_name,
            "defaults": {},
        }
        for name, definition in sorted(graph.signature_def.items())
    }


def _tensor_info(info: Any) -> dict[str, Any]:
    from tensorflow.core.framework import types_pb2

    shape = info.tensor_shape
    return {
        "dtype": types_pb2.DataType.Name(info.dtype),
        "tensor_shape": {
            "dim": [{"size": str(dim.size), "name": dim.name} for dim in shape.dim],
            "unknown_rank": shape.unknown_rank,
        },
        "name": info.name,
    }


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:300]}"
