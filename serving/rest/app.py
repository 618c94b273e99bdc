"""The FastAPI application: TensorFlow Serving's API, the page, health and metrics."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from http import HTTPStatus
from importlib.resources import files
from typing import Any

import orjson
from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException

from serving.explain import MAX_WORDS, parts, variants
from serving.predict_text import PREDICT_TEXT
from serving.rest import metrics as prometheus
from serving.rest.api import format_error, parse_json
from serving.rest.batching import Batcher
from serving.rest.bodies import Bodies, ClientGoneError
from serving.rest.client import folder_id
from serving.rest.errors import ApiError
from serving.rest.explain import as_json, parse_explain
from serving.rest.metrics import Metrics
from serving.rest.settings import MODEL_NAME, Serve
from serving.rest.switching import Models
from serving.rest.tf_serving import VERSION_HEADER, TensorFlowServing

_PAGE = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
}
_PAGE_HEADERS = {
    "cache-control": "no-cache",
    # The browser runs and loads nothing but the files of this server, whatever a review contains.
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


def create_app(models: Models, settings: Serve, metrics: Metrics) -> FastAPI:
    """Return the application.

    Args:
      models: the models, of which one is loaded.
      settings: the limits and intervals.
      metrics: the metrics that `/metrics` shows.
    """
    bodies = Bodies(settings.max_body_bytes, settings.read_timeout)
    batcher = Batcher(settings.max_batch_size, settings.max_body_bytes, settings.max_queue, metrics)

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        batcher.start()
        watching = asyncio.create_task(models.watch(settings.poll_seconds))
        yield
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watching
        batcher.stop()

    # The pages of FastAPI's documentation load scripts from other hosts.
    app = FastAPI(
        lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False
    )
    app.mount("/v1", TensorFlowServing(models, batcher, bodies, metrics, settings.max_batch_size))
    _add_page(app)
    _add_monitoring(app, models, metrics)
    _add_explain(app, models, batcher, bodies, metrics, settings.max_batch_size)

    @app.exception_handler(HTTPException)
    async def _refuse(request: Request, error: HTTPException) -> Response:
        message = f"{error.detail}: {request.method} {request.url.path}"
        return _json(format_error(message), error.status_code, dict(error.headers or {}))

    return app


def _add_page(app: FastAPI) -> None:
    folder = files("serving.rest") / "page"
    for path, (name, kind) in _PAGE.items():
        content = (folder / name).read_bytes()

        async def page(content: bytes = content, kind: str = kind) -> Response:
            return Response(content, media_type=kind, headers=_PAGE_HEADERS)

        app.router.add_route(path, _without_request(page), methods=["GET"])


def _without_request(endpoint: Any) -> Any:
    async def answer(_: Request) -> Response:
        response: Response = await endpoint()
        return response

    return answer


def _add_monitoring(app: FastAPI, models: Models, metrics: Metrics) -> None:
    identity = folder_id(models.folder)

    @app.get("/healthz")
    async def health() -> Response:
        state = {
            "status": "ok",
            "model": MODEL_NAME,
            "version": str(models.current.version),
            "folder": identity,
        }
        return _json(orjson.dumps(state))

    # The second path is that of TensorFlow Serving.
    @app.get("/metrics")
    @app.get("/monitoring/prometheus/metrics")
    async def show_metrics() -> Response:
        return Response(metrics.render(), headers={"content-type": prometheus.CONTENT_TYPE})


def _add_explain(
    app: FastAPI,
    models: Models,
    batcher: Batcher,
    bodies: Bodies,
    metrics: Metrics,
    max_batch: int,
) -> None:
    words = min(MAX_WORDS, max_batch - 1)

    @app.post("/explain")
    async def explain(request: Request) -> Response:
        start = time.perf_counter()
        try:
            body = await bodies.read(request.headers.raw, request.receive)
            text = parse_explain(parse_json(body))
            model = models.current
            outputs = await batcher.call(model, PREDICT_TEXT, variants(text, words))
            answer = {
                "probability": outputs["probability"][0],
                "label": outputs["label"][0],
                "parts": as_json(parts(text, outputs["probability"].tolist())),
            }
            content = orjson.dumps(answer, option=orjson.OPT_SERIALIZE_NUMPY)
            response = _json(content, headers={VERSION_HEADER: str(model.version)})
        except ApiError as error:
            response = _json(format_error(error.message), error.status, error.headers)
        except ClientGoneError:
            return Response()
        metrics.answered("explain", response.status_code, time.perf_counter() - start)
        return response


def _json(
    content: bytes, status: int = HTTPStatus.OK, headers: dict[str, str] | None = None
) -> Response:
    return Response(content, int(status), headers, "application/json")
