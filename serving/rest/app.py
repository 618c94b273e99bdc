"""The routes of the server: TensorFlow Serving's API, explanations, the page, health, metrics."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import mimetypes
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from importlib.resources import files
from typing import Any

import orjson
from starlette.convertors import StringConvertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import Message, Receive, Scope, Send

from preprocessing.features import UNDECIDED
from preprocessing.labels import Labels
from preprocessing.signatures import PREDICT_TEXT, SERVING_DEFAULT
from serving.explain import MAX_WORDS, parts, variants
from serving.predict_text import Outputs
from serving.rest import metrics as prometheus
from serving.rest.announced import folder_id
from serving.rest.api import (
    ExplainRequest,
    PredictRequest,
    format_answer,
    parse,
)
from serving.rest.batching import Batcher
from serving.rest.classify import ClassifyRequest, format_classes
from serving.rest.limits import Bodies, Limits
from serving.rest.metrics import Metrics
from serving.rest.model import LoadedModel
from serving.rest.sample import RequestSample
from serving.rest.settings import MODEL_NAME, VERSION_HEADER
from serving.rest.versions import ServedVersions

_PREDICT = f"/v1/models/{MODEL_NAME}:predict"
_MODEL = "/v1/models/{name:name}"
_QUOTED = 100
"""Greatest number of characters of a request that an error quotes."""
CLOSED = "the handler is closed"
"""The end of uvloop's message about a closed connection. The error has no class of its own."""
_PREFIX = re.compile(r"(/[A-Za-z0-9._~-]+)+")
_SCRIPTS = ("page.js", "answers.js", "batch.js", "elements.js", "history.js")
_PAGE = ("index.html", "page.css", "icon.svg", *_SCRIPTS)
_PAGE_HEADERS = {
    "cache-control": "no-cache",
    # The browser loads and executes only files of this server, even if a review contains HTML.
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
_log = logging.getLogger(__name__)


class _Name(StringConvertor):
    """A part of a path without a colon, so that `GET NAME:predict` does not request a status."""

    regex = "[^/:]+"


register_url_convertor("name", _Name())


def create_app(
    versions: ServedVersions,
    metrics: Metrics,
    limits: Limits,
    sample: RequestSample | None = None,
) -> Router:
    """Return the application.

    Args:
      versions: the versions in the serving folder. The current one answers.
      metrics: the metrics that are updated and served.
      limits: the limits of requests.
      sample: the sample of the texts of requests; None: none is kept.
    """
    handlers = _Handlers(versions, metrics, limits, sample)
    model_routes = [
        (":predict", "POST", handlers.predict),
        (":classify", "POST", handlers.classify),
        ("/metadata", "GET", handlers.metadata),
        ("", "GET", handlers.status),
    ]
    return _Application(
        metrics,
        routes=[
            *(
                Route(f"{path}{suffix}", do, methods=[method])
                for path in (_MODEL, f"{_MODEL}/versions/{{version:name}}")
                for suffix, method, do in model_routes
            ),
            Route("/explain", handlers.explain, methods=["POST"]),
            Route("/healthz", handlers.health),
            Route("/metrics", handlers.metrics),
            # The path of TensorFlow Serving.
            Route("/monitoring/prometheus/metrics", handlers.metrics),
            *(
                Route(f"/{name}".removesuffix("index.html"), _file(name, versions))
                for name in _PAGE
            ),
        ],
        redirect_slashes=False,
        default=_no_such_address,
        lifespan=handlers.lifespan,
    )


class _Application(Router):
    """The router, which also counts the requests and formats their errors.

    Middleware of Starlette for this would take a third of the time of a request.
    """

    def __init__(self, metrics: Metrics, **words: Any):
        super().__init__(**words)
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await super().__call__(scope, receive, send)
            return
        # With this key the router raises an error. Otherwise it would answer with plain text.
        scope["app"] = self
        start = time.perf_counter()
        code = 0

        async def send_counted(message: Message) -> None:
            nonlocal code
            code = message.get("status", code)
            await send(message)

        try:
            await super().__call__(scope, receive, send_counted)
        except HTTPException as error:
            if error.status_code == 405 and error.headers:
                allowed = error.headers["Allow"]
                error.detail = f"{scope['method']} is not allowed here; use {allowed}"
            await _error(error)(scope, receive, send_counted)
        except ClientDisconnect:
            return
        except Exception as error:  # an unexpected error must not stop the server
            # uvloop closes a connection before it reports the end of the connection.
            if CLOSED in str(error):
                await asyncio.sleep(0)
                return
            # %r: a path may contain line breaks.
            _log.exception("%s %r failed", scope["method"], scope["path"])
            internal = HTTPException(500, f"internal error: {type(error).__name__}")
            await _error(internal)(scope, receive, send_counted)
        kind = getattr(scope.get("endpoint"), "__name__", "unknown")
        self._metrics.answered(kind, code, time.perf_counter() - start)


class _Handlers:
    """The functions that answer requests; see `create_app` for the arguments."""

    def __init__(
        self,
        versions: ServedVersions,
        metrics: Metrics,
        limits: Limits,
        sample: RequestSample | None,
    ):
        self._versions = versions
        self._sample = sample
        self._metrics = metrics
        self._limits = limits
        self._bodies = Bodies(limits)
        self._batcher = Batcher(limits, metrics)
        self._folder_id = folder_id(versions.folder)

    @contextlib.asynccontextmanager
    async def lifespan(self, _: Router) -> AsyncIterator[None]:
        """Search for new versions, and write the sample of requests, while the server runs."""
        tasks = [asyncio.create_task(self._versions.watch(self._limits.poll_seconds))]
        if self._sample:
            tasks.append(asyncio.create_task(self._sample.write_regularly()))
        yield
        for task in tasks:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        if self._sample:
            self._sample.write()
        self._batcher.stop()

    async def predict(self, request: Request) -> Response:
        """Return the predictions for the texts of a request.

        Raises:
          HTTPException: the request is not valid (400), names another model or version (404), is
            too large (413), or exceeds a limit, see `Bodies.read` and `Batcher.call`.
        """
        async with self._bodies.read(request) as body:
            self._batcher.check_room()
            model = self._model(request)
            parsed = parse(PredictRequest, body, model.inputs)
            signature = parsed.signature_name or SERVING_DEFAULT
            if signature not in model.inputs:
                found = f"the model has {', '.join(model.inputs)}, not {signature[:_QUOTED]}"
                raise HTTPException(400, f"signature_name: {found}")
            outputs = await self._call(model, signature, parsed.texts)
            if self._sample and signature == PREDICT_TEXT:
                self._sample.add(parsed.texts)
            return _json(format_answer(outputs, parsed.by_row), model)

    async def classify(self, request: Request) -> Response:
        """Return the classes with their scores for the Examples of a request.

        Raises:
          HTTPException: see `predict`.
        """
        async with self._bodies.read(request) as body:
            self._batcher.check_room()
            model = self._model(request)
            parsed = parse(ClassifyRequest, body)
            if SERVING_DEFAULT not in model.inputs:
                raise HTTPException(400, f"the model has no signature {SERVING_DEFAULT}")
            outputs = await self._call(model, SERVING_DEFAULT, parsed.serialized)
            return _json(format_classes(outputs, model.labels), model)

    async def _call(self, model: LoadedModel, signature: str, texts: Sequence[bytes]) -> Outputs:
        """Return the outputs for the texts of a request, and count the predicted classes.

        Raises:
          HTTPException: there are too many texts (413), or see `Batcher.call`.
        """
        count, limit = len(texts), self._limits.reviews
        if count > limit:
            raise HTTPException(413, f"The request has {count:,} texts, limit {limit:,}")
        outputs = await self._batcher.call(model, signature, texts)
        scores = outputs.get(model.labels.scores_name)
        # Not the labels of the answer, which may be any values in a model of another program.
        if scores is not None:
            self._metrics.predicted(model.labels, model.labels.decide(scores).ravel())
        return outputs

    async def explain(self, request: Request) -> Response:
        """Return the prediction for a text, and the effects of its words.

        The effects are those on the logit of the second of two classes, or of the predicted one
        of more.

        Raises:
          HTTPException: the request is not valid (400), or exceeds a limit, see `Bodies.read` and
            `Batcher.call`.
        """
        async with self._bodies.read(request) as body:
            text = parse(ExplainRequest, body).text
            model = self._versions.current
            texts = variants(text, min(MAX_WORDS, self._limits.reviews - 1))
            outputs = await self._batcher.call(model, PREDICT_TEXT, texts)
        labels, label = model.labels, outputs["label"][0]
        probabilities = labels.shown(outputs[labels.scores_name], label)
        answer = {"probability": probabilities[0], "label": label}
        if "class" in outputs:
            answer["class"] = outputs["class"][0].decode()
        found = parts(text, probabilities.tolist())
        shown = [{key: v for key, v in part._asdict().items() if v is not None} for part in found]
        return _json({**answer, "parts": shown}, model)

    async def metadata(self, request: Request) -> Response:
        """Return the signatures of the model and its classes.

        Raises:
          HTTPException: the URL names another model or version (404).
        """
        model = self._model(request)
        spec = {"name": MODEL_NAME, "signature_name": "", "version": str(model.version)}
        metadata = {
            "signature_def": {"signature_def": model.signature_defs},
            "labels": _shown(model.labels),
        }
        return _json({"model_spec": spec, "metadata": metadata})

    async def status(self, request: Request) -> Response:
        """Return the states of all versions, or of the one that the URL names.

        Raises:
          HTTPException: the URL names another model, or no known version (404).
        """
        _check_name(request)
        version = request.path_params.get("version")
        found = self._versions.status(version)
        if version and not found:
            raise self._no_such_version(version)
        return _json({"model_version_status": found})

    async def health(self, _: Request) -> Response:
        """Return the version of the current model, and the digest of the serving folder."""
        version = str(self._versions.current.version)
        state = {"status": "ok", "model": MODEL_NAME, "version": version}
        return _json({**state, "folder": self._folder_id})

    async def metrics(self, _: Request) -> Response:
        """Return the metrics in the format of Prometheus."""
        return Response(self._metrics.render(), headers={"content-type": prometheus.CONTENT_TYPE})

    def _model(self, request: Request) -> LoadedModel:
        """Return the model that a URL names.

        Raises:
          HTTPException: this model or version is not served (404).
        """
        _check_name(request)
        model, version = self._versions.current, request.path_params.get("version")
        if version and version != str(model.version):
            raise self._no_such_version(version)
        return model

    def _no_such_version(self, version: str) -> HTTPException:
        answering = f"version {self._versions.current.version} answers"
        return HTTPException(404, f"No such version is served: {version[:_QUOTED]}; {answering}")


def _check_name(request: Request) -> None:
    """Check that a URL names the model of this server.

    Raises:
      HTTPException: it names another model (404).
    """
    name = request.path_params["name"]
    if name != MODEL_NAME:
        served = f"this server has {MODEL_NAME}"
        raise HTTPException(404, f"No such model is served: {name[:_QUOTED]}; {served}")


async def _no_such_address(scope: Scope, receive: Receive, send: Send) -> None:
    path = scope["path"]
    verb = path.rpartition(":")[2]
    if verb == "regress":
        raise HTTPException(404, f"regress is not supported; use POST {_PREDICT}")
    if "/labels/" in path:
        message = "version labels are not supported; use /versions/N, or neither"
        raise HTTPException(404, message)
    raise HTTPException(404, f"No such address: {path[:_QUOTED]}; predictions: POST {_PREDICT}")


def _file(name: str, versions: ServedVersions) -> Callable[[Request], Awaitable[Response]]:
    text = (files("serving.rest") / "page" / name).read_text(encoding="utf-8")
    content = text.replace("{{ UNDECIDED }}", str(UNDECIDED))
    kind, _ = mimetypes.guess_type(name)

    async def page(request: Request) -> Response:
        found = content.replace("{{ PREFIX }}", _prefix(request))
        if "{{ LABELS }}" in found:
            model = versions.current
            found = found.replace("{{ VERSION }}", str(model.version))
            found = found.replace("{{ LABELS }}", orjson.dumps(_shown(model.labels)).decode())
        return Response(found, media_type=kind, headers=_PAGE_HEADERS)

    return page


def _shown(labels: Labels) -> dict[str, Any]:
    """Return the classes for the page and for `metadata`."""
    return {"names": labels.names, "is_ordered": labels.is_ordered, "noun": labels.noun}


def _prefix(request: Request) -> str:
    """Return the prefix for links of the page: the path that a proxy has removed, with a slash.

    The prefix is empty if the proxy does not set `X-Forwarded-Prefix`. Then the links are relative,
    and are correct if the address of the page ends with a slash.
    """
    prefix = request.headers.get("x-forwarded-prefix", "").removesuffix("/")
    return f"{prefix}/" if _PREFIX.fullmatch(prefix) else ""


def _error(error: HTTPException) -> Response:
    # A message may quote a part of the request, cut in the middle of a character.
    content = orjson.dumps({"error": error.detail.encode("utf-8", "replace").decode()})
    headers = dict(error.headers or {})
    return Response(content, error.status_code, headers, media_type="application/json")


def _json(answer: bytes | dict[str, Any], model: LoadedModel | None = None) -> Response:
    if isinstance(answer, dict):
        answer = orjson.dumps(answer, option=orjson.OPT_SERIALIZE_NUMPY)
    headers = {VERSION_HEADER: str(model.version)} if model else None
    return Response(answer, headers=headers, media_type="application/json")
