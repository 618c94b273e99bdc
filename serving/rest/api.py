"""The format of TensorFlow Serving's REST API: requests in, answers and error messages out.

The rules and the texts of the errors follow `json_tensor.cc` of TensorFlow Serving, for models
whose signatures have one input, a list of strings.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import orjson

from serving.rest.errors import ApiError, invalid

DEFAULT_SIGNATURE = "serving_default"
PREDICT = re.compile(
    r"/v1/models/([^/:]+)(?:/versions/([0-9]+)|/labels/([^/:]+))?:(classify|regress|predict)"
)
STATUS = re.compile(r"/v1/models(?:/([^/:]+))?(?:/versions/([0-9]+)|/labels/([^/:]+))?(/metadata)?")

_BOM = b"\xef\xbb\xbf"
_CHARACTERS_SHOWN = 200
_TYPES = {
    type(None): "Null",
    bool: "Bool",
    int: "Number",
    float: "Number",
    str: "String",
    list: "Array",
    dict: "Object",
}


class Request(NamedTuple):
    """The content of a predict request.

    Attributes:
      texts: the values of the input.
      by_row: the format of the request and its answer: rows (`instances`) or columns (`inputs`).
    """

    texts: list[bytes]
    by_row: bool


def parse_json(body: bytes) -> dict[str, Any]:
    """Return the JSON object in a body.

    Raises:
      ApiError: the body is not a JSON object.
    """
    if not body:
        raise invalid("JSON Parse error: The document is empty")
    try:
        document = orjson.loads(body.removeprefix(_BOM))
    except orjson.JSONDecodeError as error:
        raise invalid(f"JSON Parse error: {error.msg} at offset: {error.pos}") from None
    if not isinstance(document, dict):
        raise invalid(f"JSON Value: {_show(document)} Is not object")
    return document


def signature_name(document: Mapping[str, Any]) -> str:
    """Return the signature that a request selects.

    Raises:
      ApiError: `signature_name` is not a string.
    """
    name = document.get("signature_name", "")
    if not isinstance(name, str):
        raise invalid(
            f"JSON Value: {_show(document)} not formatted correctly. 'signature_name' key must be "
            "a string value."
        )
    return name or DEFAULT_SIGNATURE


def parse_predict(document: Mapping[str, Any], name: str) -> Request:
    """Return the content of a predict request.

    Args:
      document: the JSON object of the request.
      name: the input of the signature.

    Raises:
      ApiError: the request does not have the format of TensorFlow Serving.
    """
    if "instances" in document and "inputs" in document:
        raise invalid(
            f"JSON Value: {_show(document)} Not formatted correctly expecting only one of 'inputs' "
            "or 'instances' keys to exist "
        )
    if "instances" in document:
        return Request(_rows(document["instances"], document, name), by_row=True)
    if "inputs" in document:
        return Request(_column(document["inputs"], name), by_row=False)
    raise invalid("Missing 'inputs' or 'instances' key")


def format_answer(outputs: Mapping[str, np.ndarray], by_row: bool) -> bytes:
    """Return the body of the answer to a predict request.

    Args:
      outputs: name of an output -> its values, of shape [reviews, ...].
      by_row: the format of the request.
    """
    columns = {name: _values(name, outputs[name]) for name in sorted(outputs)}
    answer: dict[str, Any]
    if len(columns) == 1:
        [values] = columns.values()
        answer = {"predictions" if by_row else "outputs": values}
    elif by_row:
        names = list(columns)
        rows = zip(*columns.values(), strict=True)
        answer = {"predictions": [dict(zip(names, row, strict=True)) for row in rows]}
    else:
        answer = {"outputs": columns}
    # float32 in its own shortest form, as TensorFlow Serving writes it: 0.9, not 0.8999999762.
    return orjson.dumps(answer, option=orjson.OPT_SERIALIZE_NUMPY)


def format_error(message: str) -> bytes:
    """Return the body of the answer to a request that failed."""
    # A message may quote a part of the request, cut in the middle of a character.
    return orjson.dumps({"error": message.encode("utf-8", "replace").decode()})


def _rows(instances: Any, document: Mapping[str, Any], name: str) -> list[bytes]:
    if not isinstance(instances, list):
        raise invalid(f"JSON Value: {_show(document)} Excepting 'instances' to be an list/array")
    if not instances:
        raise invalid(f"JSON Value: {_show(document)} No values in 'instances' array")
    named = _is_object(instances[0])
    texts = []
    for position, element in enumerate(instances):
        if type(element) is str and not named:
            texts.append(element.encode())
            continue
        if named != _is_object(element):
            expected, got = ("object", "list") if named else ("value/list", "object")
            raise invalid(f"Expecting {expected} but got {got} at item {position} of input list")
        if named and set(element) != {name}:
            raise invalid(
                f"Failed to process element: {position} of 'instances' list. JSON object: "
                f"{_show(element)} keys must be equal to: {name}"
            )
        try:
            texts.append(_string(element[name] if named else element))
        except ApiError as error:
            key = f" key: {name}" if named else ""
            raise invalid(
                f"Failed to process element: {position}{key} of 'instances' list. Error: "
                f"INVALID_ARGUMENT: {error.message}"
            ) from None
    return texts


def _column(inputs: Any, name: str) -> list[bytes]:
    if _is_object(inputs):
        if name not in inputs:
            raise invalid(f"Missing named input: {name} in 'inputs' object.")
        inputs = inputs[name]
    if not isinstance(inputs, list):
        _string(inputs)
        raise invalid(f"{name} must be a list of strings, of shape [batch], but is a single value")
    return [_string(value) for value in inputs]


def _is_object(value: Any) -> bool:
    return isinstance(value, dict) and not _is_base64(value)


def _is_base64(value: dict[str, Any]) -> bool:
    return len(value) == 1 and isinstance(value.get("b64"), str)


def _string(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, list):
        raise invalid("Encountered list at unexpected level: 1 expected < 1")
    if not isinstance(value, dict):
        kind = str(value) if isinstance(value, bool) else _TYPES[type(value)]
        raise invalid(f"JSON Value: {_show(value)} Type: {kind} is not of expected type: string")
    if not _is_base64(value):
        raise invalid(f"JSON Value: {_show(value)} not formatted correctly for base64 data")
    try:
        # TensorFlow Serving accepts missing padding too.
        encoded = value["b64"].encode().rstrip(b"=")
        return b64decode(encoded + b"=" * (-len(encoded) % 4), validate=True)
    except binascii.Error:
        raise invalid("Unable to base64 decode") from None


def _values(name: str, output: np.ndarray) -> Any:
    if output.dtype == object:
        return _texts(output.tolist(), binary=name.endswith("_bytes"))
    return np.ascontiguousarray(output) if output.ndim > 1 else list(output)


def _texts(value: Any, binary: bool) -> Any:
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return [_texts(item, binary) for item in value]
    if binary:
        return {"b64": binascii.b2a_base64(value, newline=False).decode()}
    return value.decode("utf-8", "replace")


def _show(value: Any) -> str:
    """Return a JSON value for a message, shortened."""
    try:
        text = orjson.dumps(value).decode()
    except orjson.JSONEncodeError:
        # orjson reads up to 1024 levels, but writes only 254.
        return "(nested too deeply to be shown)"
    return text if len(text) <= _CHARACTERS_SHOWN else f"{text[:_CHARACTERS_SHOWN]}..."
