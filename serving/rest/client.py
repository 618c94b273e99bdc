"""A client of a running server, for commands that would otherwise load the model themselves.

It imports the standard library only, because the import of TensorFlow takes seconds.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from serving.predictor import Prediction
from serving.rest.settings import MODEL_NAME, Serve

_CONNECT_SECONDS = 1.0
_ANSWER_SECONDS = 30.0
_ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}
_JSON = {"content-type": "application/json"}


class _Predictor(Protocol):
    def predict(self, texts: Sequence[bytes]) -> list[Prediction]: ...


class RemotePredictor:
    """A predictor that uses a running server, or after its failure a predictor of this process."""

    def __init__(self, host: str, port: int, load: Callable[[], _Predictor]):
        """Construct the predictor.

        Args:
          host, port: the address of the server.
          load: returns the predictor of this process.
        """
        self._host = host
        self._port = port
        self._load = load
        self._loaded: _Predictor | None = None

    def predict(self, texts: Sequence[bytes]) -> list[Prediction]:
        """Return the sentiment of each text, in UTF-8."""
        if self._loaded is None:
            try:
                return self._request(texts)
            except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
                self._loaded = self._load()
        return self._loaded.predict(texts)

    def _request(self, texts: Sequence[bytes]) -> list[Prediction]:
        instances = [text.decode() for text in texts]
        body = json.dumps({"signature_name": "predict_text", "instances": instances})
        answer = _exchange(
            self._host, self._port, "POST", f"/v1/models/{MODEL_NAME}:predict", body.encode()
        )
        predictions = [
            Prediction(float(one["probability"]), int(one["label"]))
            for one in answer["predictions"]
        ]
        if len(predictions) != len(texts):
            raise ValueError("the server returned another number of predictions")
        return predictions


def find_server(settings: Serve, model: str, load: Callable[[], _Predictor]) -> _Predictor:
    """Return a predictor for `model`: a running server on this machine, or `load()`.

    Args:
      settings: the address of the server.
      model: folder of the version that must answer, in the serving folder. A server of another
        folder or version is not used.
      load: returns a predictor of this process.
    """
    host = _ANY_ADDRESS.get(settings.host, settings.host)
    folder, version = model.rstrip("/").rsplit("/", 1)
    try:
        state = _exchange(host, settings.port, "GET", "/healthz")
        found = (state["status"], state["model"], state["version"], state["folder"])
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
        return load()
    if found != ("ok", MODEL_NAME, version, folder_id(folder)):
        return load()
    return RemotePredictor(host, settings.port, load)


def folder_id(folder: str) -> str:
    """Return a digest of the path of a serving folder, which does not reveal the path."""
    path = folder.rstrip("/") if "://" in folder else os.path.realpath(folder)
    return hashlib.sha256(path.encode("utf-8", "surrogateescape")).hexdigest()[:32]


def _exchange(
    host: str, port: int, method: str, path: str, body: bytes | None = None
) -> dict[str, Any]:
    """Return the JSON object that a server answers.

    Raises:
      OSError: there is no server.
      http.client.HTTPException: the server does not use HTTP.
      ValueError: the answer of the server is an error, or not a JSON object.
    """
    # No proxy: the server is on this machine.
    connection = http.client.HTTPConnection(host, port, timeout=_CONNECT_SECONDS)
    try:
        connection.connect()
        connection.sock.settimeout(_ANSWER_SECONDS if body else _CONNECT_SECONDS)
        connection.request(method, path, body, _JSON if body else {})
        response = connection.getresponse()
        if response.status != http.client.OK:
            raise ValueError(f"HTTP {response.status}")
        answer = json.loads(response.read())
        if not isinstance(answer, dict):
            raise ValueError("no JSON object")
        return answer
    finally:
        connection.close()
