"""A client of a running server, for commands that would otherwise load the model themselves.

It imports the standard library only, because the import of TensorFlow takes seconds.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import urllib.request
from collections.abc import Sequence
from typing import Any

from serving.answers import Prediction
from serving.rest.settings import MODEL_NAME, Server, url

_CONNECT_SECONDS = 1.0
_ANSWER_SECONDS = 30.0


def ask_server(server: Server, model: str, texts: Sequence[bytes]) -> list[Prediction] | None:
    """Return the predictions of a running server on this machine; None if it cannot answer.

    Args:
      server: the address of the server.
      model: folder of the version that must answer, in the serving folder. A server of another
        folder or version is not used.
      texts: reviews in UTF-8.
    """
    # On Linux, the address of all interfaces reaches this machine too.
    address = url(server.host, server.port)
    folder, version = model.rstrip("/").rsplit("/", 1)
    wanted = {"status": "ok", "model": MODEL_NAME, "version": version, "folder": folder_id(folder)}
    request = {"signature_name": "predict_text", "instances": [text.decode() for text in texts]}
    try:
        if _open(f"{address}/healthz", _CONNECT_SECONDS) != wanted:
            return None
        predict = f"{address}/v1/models/{MODEL_NAME}:predict"
        rows = _open(predict, _ANSWER_SECONDS, json.dumps(request).encode())["predictions"]
        return [Prediction(float(row["probability"]), int(row["label"])) for row in rows]
    # There is no server, it does not use HTTP, or it answers with an error or something else.
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
        return None


def folder_id(folder: str) -> str:
    """Return a digest of the path of a serving folder, which does not reveal the path."""
    path = folder.rstrip("/") if "://" in folder else os.path.realpath(folder)
    return hashlib.sha256(path.encode("utf-8", "surrogateescape")).hexdigest()[:32]


def _open(address: str, seconds: float, body: bytes | None = None) -> Any:
    """Return the JSON that a server answers."""
    # No proxy: the server is on this machine.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    request = urllib.request.Request(address, body, {"content-type": "application/json"})
    with opener.open(request, timeout=seconds) as response:
        return json.load(response)
