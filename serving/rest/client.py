"""A client of a running server, for commands that would otherwise load the model themselves.

It imports the standard library only, because the import of TensorFlow takes seconds.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import urllib.request
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from serving.predictor import Prediction
from serving.rest.settings import MODEL_NAME, Server

_CONNECT_SECONDS = 1.0
_ANSWER_SECONDS = 30.0
_ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}
_FAILURES = (OSError, http.client.HTTPException, ValueError, KeyError, TypeError)
"""There is no server, it does not use HTTP, or it answers with an error or something else."""


class _Predictor(Protocol):
    def predict(self, texts: Sequence[bytes]) -> list[Prediction]: ...


class RemotePredictor:
    """A predictor that uses a running server, or after its failure a predictor of this process."""

    def __init__(self, url: str, load: Callable[[], _Predictor]):
        """Construct the predictor.

        Args:
          url: the URL of the server, without a path.
          load: returns the predictor of this process.
        """
        self._url = url
        self._load = load
        self._loaded: _Predictor | None = None

    def predict(self, texts: Sequence[bytes]) -> list[Prediction]:
        """Return the sentiment of each text, in UTF-8."""
        if self._loaded is None:
            instances = [text.decode() for text in texts]
            body = json.dumps({"signature_name": "predict_text", "instances": instances}).encode()
            try:
                url = f"{self._url}/v1/models/{MODEL_NAME}:predict"
                answers = _open(url, _ANSWER_SECONDS, body)["predictions"]
                found = [
                    Prediction(float(one["probability"]), int(one["label"])) for one in answers
                ]
                if len(found) == len(texts):
                    return found
            except _FAILURES:
                pass
            self._loaded = self._load()
        return self._loaded.predict(texts)


def find_server(settings: Server, model: str, load: Callable[[], _Predictor]) -> _Predictor:
    """Return a predictor for `model`: a running server on this machine, or `load()`.

    Args:
      settings: the address of the server.
      model: folder of the version that must answer, in the serving folder. A server of another
        folder or version is not used.
      load: returns a predictor of this process.
    """
    host = _ANY_ADDRESS.get(settings.host, settings.host)
    url = f"http://[{host}]:{settings.port}" if ":" in host else f"http://{host}:{settings.port}"
    folder, version = model.rstrip("/").rsplit("/", 1)
    wanted = {"status": "ok", "model": MODEL_NAME, "version": version, "folder": folder_id(folder)}
    try:
        if _open(f"{url}/healthz", _CONNECT_SECONDS) == wanted:
            return RemotePredictor(url, load)
    except _FAILURES:
        pass
    return load()


def folder_id(folder: str) -> str:
    """Return a digest of the path of a serving folder, which does not reveal the path."""
    path = folder.rstrip("/") if "://" in folder else os.path.realpath(folder)
    return hashlib.sha256(path.encode("utf-8", "surrogateescape")).hexdigest()[:32]


def _open(url: str, seconds: float, body: bytes | None = None) -> Any:
    """Return the JSON that a server answers."""
    # No proxy: the server is on this machine.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    request = urllib.request.Request(url, body, {"content-type": "application/json"})
    with opener.open(request, timeout=seconds) as response:
        return json.load(response)
