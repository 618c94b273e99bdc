"""The endpoints of TensorFlow Serving's REST API, as an ASGI application below `/v1/`."""

from __future__ import annotations

import logging
import time
from http import HTTPStatus
from typing import Any

import orjson

from serving.rest.api import (
    PREDICT,
    STATUS,
    format_answer,
    format_error,
    parse_json,
    parse_predict,
    signature_name,
)
from serving.rest.batching import Batcher
from serving.rest.bodies import Bodies, ClientGoneError
from serving.rest.errors import ApiError, invalid, not_found, too_large
from serving.rest.metrics import Metrics
from serving.rest.models import LoadedModel
from serving.rest.settings import MODEL_NAME
from serving.rest.switching import Models

VERSION_HEADER = "x-model-version"
"""The header with the version that answered, which TensorFlow Serving does not have."""
_JSON = (b"content-type", b"application/json")
_log = logging.getLogger(__name__)


class TensorFlowServing:
    """The API as an ASGI application. FastAPI would take longer for a request than the model."""

    def __init__(
        self, models: Models, batcher: Batcher, bodies: Bodies, metrics: Metrics, max_batch: int
    ):
        self._models = models
        self._batcher = batcher
        self._bodies = bodies
        self._metrics = metrics
        self._max_batch = max_batch

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        start = time.perf_counter()
        kind = "other"
        status: int = HTTPStatus.OK
        headers: dict[str, str] = {}
        try:
            path, method = scope["path"], scope["method"]
            predict = PREDICT.fullmatch(path) if method == "POST" else None
            read = STATUS.fullmatch(path) if method in ("GET", "HEAD") else None
            if predict:
                kind = predict[4]
                content, version = await self._predict(scope, receive, *predict.groups())
                headers[VERSION_HEADER] = str(version)
            elif read:
                kind = "metadata" if read[4] else "status"
                content = orjson.dumps(self._describe(*read.groups()))
            else:
                raise invalid(f"Malformed request: {method} {path}")
        except ApiError as error:
            status, headers = error.status, error.headers
            content = format_error(error.message)
        except ClientGoneError:
            return
        except Exception as error:  # an unexpected error must not stop the server
            _log.exception("%s %s failed", scope["method"], scope["path"])
            status = HTTPStatus.INTERNAL_SERVER_ERROR
            content = format_error(f"internal error: {type(error).__name__}")
        await respond(send, status, content, headers)
        self._metrics.answered(kind, status, time.perf_counter() - start)

    async def _predict(
        self,
        scope: Any,
        receive: Any,
        name: str,
        version: str | None,
        label: str | None,
        method: str,
    ) -> tuple[bytes, int]:
        body = await self._bodies.read(scope["headers"], receive)
        self._batcher.check_room()
        model = self._find(name, version, label)
        document = parse_json(body)
        signature = signature_name(document)
        definition = model.signature_defs.get(signature)
        if definition is None:
            raise invalid(f'Serving signature name: "{signature}" not found in signature def')
        if method != "predict":
            raise invalid(
                f"Expected {method} signature method_name to be tensorflow/serving/{method}. "
                f"Was: {definition['method_name']}"
            )
        if signature not in model.signatures:
            raise invalid(f"Failed to get input map for signature: {signature}")
        request = parse_predict(document, model.signatures[signature].input)
        if len(request.texts) > self._max_batch:
            raise too_large(
                f"The request has {len(request.texts):,} reviews, limit {self._max_batch:,}"
            )
        outputs = await self._batcher.call(model, signature, request.texts)
        return format_answer(outputs, request.by_row), model.version

    def _describe(
        self, name: str | None, version: str | None, label: str | None, metadata: str | None
    ) -> dict[str, Any]:
        if name is None:
            raise invalid("Missing model name in request.")
        if metadata:
            model = self._find(name, version, label)
            return {
                "model_spec": {"name": name, "signature_name": "", "version": str(model.version)},
                "metadata": {"signature_def": {"signature_def": model.signature_defs}},
            }
        if label is not None:
            raise _unknown_label(label)
        number = None if version is None else _number(version)
        found = self._models.status(number) if name == MODEL_NAME else []
        if not found and number is not None:
            raise not_found(f"Could not find version {number} of model {name}")
        if not found:
            raise not_found(f"Could not find any versions of model {name}")
        return {"model_version_status": found}

    def _find(self, name: str, version: str | None, label: str | None) -> LoadedModel:
        """Return the model that a URL names.

        Raises:
          ApiError: no such model or version is loaded.
        """
        if label is not None:
            raise _unknown_label(label)
        model = self._models.current
        number = None if version is None else _number(version)
        if name != MODEL_NAME or number not in (None, model.version):
            wanted = f"Latest({name})" if number is None else f"Specific({name}, {number})"
            raise not_found(f"Servable not found for request: {wanted}")
        return model


async def respond(send: Any, status: int, content: bytes, headers: dict[str, str]) -> None:
    """Send a response with JSON as its content."""
    fields = [_JSON, (b"content-length", str(len(content)).encode())]
    fields += [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": int(status), "headers": fields})
    await send({"type": "http.response.body", "body": content})


def _number(version: str) -> int:
    number = int(version[:20])
    if len(version) > 20 or number >= 2**63:
        raise invalid(f"Failed to convert version: {version[:40]} to numeric.")
    return number


def _unknown_label(label: str) -> ApiError:
    return invalid(f"Unrecognized servable version label: {label}")
