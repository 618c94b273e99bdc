"""A client of a running server, with which a command does not have to load the model.

It imports the standard library only, because the import of TensorFlow takes seconds.
"""

from __future__ import annotations

import http.client
import json
import urllib.request
from collections.abc import Mapping, Sequence
from typing import Any

from preprocessing.signatures import PREDICT_TEXT
from serving.answers import Prediction
from serving.rest.announced import addresses, folder_id
from serving.rest.listener import url
from serving.rest.settings import MODEL_NAME, VERSION_HEADER, Server

_CONNECT_SECONDS = 1.0
_ANSWER_SECONDS = 30.0


def ask_server(server: Server, model: str, texts: Sequence[bytes]) -> list[Prediction] | None:
    """Return the predictions of a running server on this machine; None if no server can answer.

    The server in the settings precedes those that this user has started with `amazon-reviews serve`
    on any port. Only a server with the same folder and version is used.

    Args:
      server: the settings of the server.
      model: the folder of the version that must answer, which is in the serving folder.
      texts: reviews in UTF-8.

    Raises:
      UnicodeDecodeError: a text is not UTF-8.
    """
    folder, version = model.rstrip("/").rsplit("/", 1)
    # On Linux, a connection to the address of all interfaces reaches this machine too.
    configured = url(server.host, server.port)
    for address in dict.fromkeys([configured, *addresses(folder)]):
        found = _ask(address, folder, version, texts)
        if found is not None:
            return found
    return None


def _ask(
    address: str, folder: str, version: str, texts: Sequence[bytes]
) -> list[Prediction] | None:
    """Return the predictions of one server; None if it cannot answer."""
    wanted = {"status": "ok", "model": MODEL_NAME, "version": version, "folder": folder_id(folder)}
    request = {"signature_name": PREDICT_TEXT, "instances": [text.decode() for text in texts]}
    try:
        if _open(f"{address}/healthz", _CONNECT_SECONDS)[0] != wanted:
            return None
        predict = f"{address}/v1/models/{MODEL_NAME}:predict"
        answer, answered = _open(predict, _ANSWER_SECONDS, json.dumps(request).encode())
        # The server may have switched to another version, whose classes may differ.
        if answered != version:
            return None
        return [_prediction(row) for row in answer["predictions"]]
    # There is no server, the server does not use HTTP, or its answer is an error or another JSON.
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
        return None


def _prediction(row: Mapping[str, Any]) -> Prediction:
    label = int(row["label"])
    of_label = row["probability"] if "probability" in row else row["probabilities"][label]
    return Prediction(float(of_label), label)


def _open(address: str, seconds: float, body: bytes | None = None) -> tuple[Any, str | None]:
    """Return the JSON of a server's answer, and the version that computed it, if it names one.

    Args:
      address: the URL, including its path.
      seconds: the timeout.
      body: the body of a POST request; None for a GET request.

    Raises:
      OSError: the server does not respond, or answers with an error of HTTP.
      http.client.HTTPException: it does not answer with HTTP.
      ValueError: it does not answer with JSON.
    """
    # No proxy: the server is on this machine.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    request = urllib.request.Request(address, body, {"content-type": "application/json"})
    with opener.open(request, timeout=seconds) as response:
        return json.load(response), response.headers[VERSION_HEADER]
