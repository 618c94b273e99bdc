"""The requests and answers of TensorFlow Serving's REST API, and the requests of `/explain`.

The signatures that a server can call have one input, a list of strings.
"""

from __future__ import annotations

import codecs
from base64 import b64decode
from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

import numpy as np
import orjson
from pydantic import (
    BaseModel,
    BeforeValidator,
    FailFast,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from starlette.exceptions import HTTPException

from core.errors import not_utf8
from preprocessing.signatures import SERVING_DEFAULT
from serving.predict_text import Outputs

MAX_CHARACTERS = 5_000
"""Greatest number of characters of a review that `/explain` accepts."""


def _unnamed(value: Any, request: ValidationInfo) -> Any:
    """Return VALUE of {INPUT: VALUE}, and any other value unchanged.

    Raises:
      ValueError: the input of the signature has another name.
    """
    if not isinstance(value, dict) or len(value) != 1 or "b64" in value:
        return value
    [(name, content)] = value.items()
    signature = request.data.get("signature_name") or SERVING_DEFAULT
    # Any name is accepted for an unknown signature, which the handler refuses.
    wanted = (request.context or {}).get(signature, name)
    if name != wanted:
        raise ValueError(f"the input of {signature} is named {wanted}, not {name[:100]}")
    return content


def _text(value: Any, request: ValidationInfo) -> bytes:
    return decode_bytes(_unnamed(value, request))


def decode_bytes(value: Any) -> bytes:
    """Return the bytes of a string, or of {"b64": STRING}.

    Args:
      value: a JSON value.

    Raises:
      ValueError: the value has another form, or is not Base64.
    """
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, dict) and set(value) == {"b64"} and isinstance(value["b64"], str):
        # TensorFlow Serving accepts missing padding too.
        encoded = value["b64"].encode().rstrip(b"=")
        return b64decode(encoded + b"=" * (-len(encoded) % 4), validate=True)
    raise ValueError('must be a string, or {"b64": STRING} for bytes')


_Texts = Annotated[list[Annotated[bytes, BeforeValidator(_text)]], FailFast()]


class PredictRequest(BaseModel):
    """The body of a predict request, in the row format or in the column format.

    In the row format `instances` is a list of values or of {INPUT: VALUE}. In the column format
    `inputs` is a list of values or {INPUT: LIST}. The context of the validation is a mapping from
    each signature to the name of its input.

    Attributes:
      signature_name: the signature; empty: `SERVING_DEFAULT`.
      instances: the values in the row format: texts in UTF-8, or serialized Examples.
      inputs: the same values in the column format.
    """

    signature_name: str = ""
    instances: _Texts = []
    inputs: Annotated[_Texts, BeforeValidator(_unnamed)] = []

    @model_validator(mode="after")
    def _one_format(self) -> PredictRequest:
        if len(self.model_fields_set & {"instances", "inputs"}) != 1:
            raise ValueError("either instances or inputs is required")
        if self.by_row and not self.instances:
            raise ValueError("instances is empty")
        return self

    @property
    def by_row(self) -> bool:
        """Whether the request, and so its answer, is in the row format."""
        return "instances" in self.model_fields_set

    @property
    def texts(self) -> list[bytes]:
        """The values of the input."""
        return self.instances or self.inputs


class ExplainRequest(BaseModel):
    """The body of a request for the effects of the words of a review.

    Attributes:
      text: the review, which is not blank.
    """

    text: Annotated[str, Field(max_length=MAX_CHARACTERS)]

    @field_validator("text")
    @classmethod
    def _not_blank(cls, text: str) -> str:
        if not text.strip():
            raise ValueError("the text is blank; send one with a word")
        return text


_Request = TypeVar("_Request", bound=BaseModel)


def parse(kind: type[_Request], body: bytes, inputs: Mapping[str, str] | None = None) -> _Request:
    """Return the request in a body.

    Args:
      kind: the kind of the request.
      body: JSON in UTF-8.
      inputs: signature -> the name of its input, for a PredictRequest.

    Raises:
      HTTPException: the body is not JSON, or not a request of this kind (400).
    """
    if not body:
        # Without Content-Length the rest of the connection is no body.
        raise HTTPException(400, "the body is empty; send JSON, with its Content-Length")
    try:
        return kind.model_validate_json(body.removeprefix(codecs.BOM_UTF8), context=inputs)
    except ValidationError as error:
        try:
            body.decode()
        except UnicodeDecodeError as other:
            raise HTTPException(400, f"the body is not JSON in UTF-8: {not_utf8(other)}") from None
        problem = error.errors(include_url=False)[0]
        message = problem["msg"].removeprefix("Value error, ")
        location = ".".join(map(str, problem["loc"]))
        raise HTTPException(400, f"{location}: {message}" if location else message) from None


def format_answer(outputs: Outputs, by_row: bool) -> bytes:
    """Return the JSON body of the answer to a predict request.

    Args:
      outputs: output of the signature -> its values, each of shape [reviews, ...].
      by_row: whether the request, and so the answer, is in the row format.
    """
    columns = {name: _values(outputs[name]) for name in sorted(outputs)}
    answer: Any = columns
    if len(columns) == 1:
        [answer] = columns.values()
    elif by_row:
        rows = zip(*columns.values(), strict=True)
        answer = [dict(zip(columns, row, strict=True)) for row in rows]
    # A float32 has its shortest form, as in TensorFlow Serving: 0.9, not 0.8999999762.
    return orjson.dumps(
        {"predictions" if by_row else "outputs": answer}, option=orjson.OPT_SERIALIZE_NUMPY
    )


def _values(output: np.ndarray) -> Any:
    if output.dtype == object:
        return _decoded(output.tolist())
    return np.ascontiguousarray(output) if output.ndim > 1 else list(output)


def _decoded(value: Any) -> Any:
    if isinstance(value, list):
        return [_decoded(item) for item in value]
    return value.decode("utf-8", "replace")
