"""The requests and answers of `:classify` in TensorFlow Serving's API: Examples, scored classes."""

from __future__ import annotations

from typing import Annotated, Any

import orjson
import tensorflow as tf
from pydantic import BaseModel, BeforeValidator, ConfigDict, FailFast, Field, field_validator

from preprocessing.labels import Labels
from preprocessing.signatures import CLASSIFY
from serving.predict_text import Outputs
from serving.rest.api import decode_bytes

SIGNATURES = ("", CLASSIFY)
"""The signatures that a request may name. TensorFlow Serving requires the second one."""
_INT64 = 2**63
"""The limit of the integers of an Example."""


def _feature(value: Any) -> tf.train.Feature:
    """Return the feature for a JSON value: a number, a text, bytes, or a list of one kind.

    Raises:
      ValueError: the value has no feature.
    """
    values = value if isinstance(value, list) else [value]
    kinds = {type(each) for each in values}
    if kinds <= {str, dict}:
        found = tf.train.BytesList(value=[decode_bytes(each) for each in values])
        return tf.train.Feature(bytes_list=found)
    # JSON has integers that are too large even for a float.
    is_numeric = kinds <= {int, float} and all(
        -_INT64 <= each < _INT64 for each in values if isinstance(each, int)
    )
    if is_numeric and kinds == {int}:
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))
    if is_numeric:
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))
    raise ValueError('must be a number, a string, {"b64": STRING}, or a list of one of these')


_Features = dict[str, Annotated[tf.train.Feature, BeforeValidator(_feature)]]


class ClassifyRequest(BaseModel):
    """The body of a classify request.

    Attributes:
      signature_name: one of `SIGNATURES`.
      context: the features that all Examples share.
      examples: the features of each Example, name -> value.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    signature_name: str = ""
    context: _Features = {}
    examples: Annotated[list[_Features], Field(min_length=1), FailFast()]

    @field_validator("signature_name")
    @classmethod
    def _known(cls, name: str) -> str:
        if name not in SIGNATURES:
            raise ValueError(f"classify requires the signature {CLASSIFY}, not {name[:100]}")
        return name

    @property
    def serialized(self) -> list[bytes]:
        """The serialized Examples. A feature of an Example precedes that of the context."""
        found = [{**self.context, **features} for features in self.examples]
        return [
            tf.train.Example(features=tf.train.Features(feature=each)).SerializeToString()
            for each in found
        ]


def format_classes(outputs: Outputs, labels: Labels) -> bytes:
    """Return the JSON body of the answer to a classify request.

    It has a list of (class, score) for each Example, in the order of the labels.

    Args:
      outputs: outputs of the signature `serving_default`.
      labels: the classes of the model.
    """
    scores = labels.by_class(outputs[labels.scores_name])
    # A float32 has its shortest form, as in TensorFlow Serving.
    rows = [list(zip(labels.names, row, strict=True)) for row in scores]
    return orjson.dumps({"results": rows}, option=orjson.OPT_SERIALIZE_NUMPY)
