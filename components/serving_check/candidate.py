"""The trial of a candidate: our own server serves it in a process, and a client sends requests.

The model is loaded, batched and called as in production. The measured memory and latency include
those of the HTTP server.
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import http.client
import json
import math
import os
import re
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from absl import logging

from components.examples import example_text
from components.saved_models import copy_folder
from core import processes
from core.errors import ERROR_LINE, ServerError, cause
from core.machine import peak_rss
from core.progress import report_stage
from preprocessing.signatures import PREDICT_TEXT, SERVING_DEFAULT, TRANSFORM_FEATURES
from serving.rest import server
from serving.rest.limits import Limits
from serving.rest.settings import MODEL_NAME

_SIGNATURES = (SERVING_DEFAULT, PREDICT_TEXT, TRANSFORM_FEATURES)
_SERVER = server.__name__
_TIMEOUT_SECONDS = 600.0
_SINGLE_REQUESTS = 300
"""Maximum number of requests with a single text."""
_SINGLE_SECONDS = 3.0
"""Seconds after which no more requests with a single text are sent."""
_BATCH = 64
_BATCH_BYTES = 2 * 2**20
"""Maximum size of a batch. Its Base64 form fits into the largest body that the server accepts."""
BODY_BYTES = Limits().body_bytes
"""Size of the largest body of a request that the server accepts."""
MAX_BYTES = BODY_BYTES * 3 // 4 - 1024
"""Maximum size of an Example that can be sent, whose Base64 form is a third larger."""
_REJECTED = re.compile(r"/1 is rejected: it (.+)")
"""The log line of the server for a model that it cannot load."""
_MAX_CHARACTERS = 300
"""Maximum number of characters of an error of the server."""


@dataclasses.dataclass
class Answers:
    """The answers of a candidate. After a failure the missing answers are empty.

    A probability is a number from 0 to 1, or NaN. It is that of the second of two classes. Of more
    classes it is a list with the probability of each class.

    Attributes:
      failure: the reason why some answers are missing; empty if all are there.
      measured: name -> measurement. `load_seconds` is the time until each signature has answered
        once; `p99_ms` is the p99 latency of requests with one text; `reviews_per_second` is the
        throughput of `predict_text` in batches; `memory_mb` is the peak resident memory of the
        server in MiB.
      by_example: the probability of each Example, from `serving_default`.
      by_text: the probability of the text of each Example, from `predict_text` in batches.
      by_single: the probabilities of the first texts, from `predict_text` with one text a request.
      golden: the probability of each golden sentence, from `predict_text`.
    """

    failure: str = ""
    measured: dict[str, float] = dataclasses.field(default_factory=dict)
    by_example: list[Any] = dataclasses.field(default_factory=list)
    by_text: list[Any] = dataclasses.field(default_factory=list)
    by_single: list[Any] = dataclasses.field(default_factory=list)
    golden: list[Any] = dataclasses.field(default_factory=list)


def try_candidate(
    model: str, examples: Sequence[bytes], golden: Sequence[str], seconds: float = _TIMEOUT_SECONDS
) -> Answers:
    """Serve a model in a new process, on the CPU, and send requests to it.

    Args:
      model: the folder of the SavedModel, or its URL.
      examples: serialized raw Examples, at least one.
      golden: the texts of the golden sentences.
      seconds: the timeout, after which the server is killed.

    Returns:
      The answers. An error of the model or the server is their `failure`.

    Raises:
      InputError: the model is missing.
      OSError, tensorflow.errors.OpError: the model cannot be copied.
    """
    answers = Answers()
    with tempfile.TemporaryDirectory(prefix="serving_check_") as folder:
        copy_folder(model, f"{folder}/1")
        log = Path(folder) / "log"
        process = _start(folder, log)
        start = time.monotonic()
        timer = threading.Timer(seconds, process.kill)
        timer.start()
        try:
            _send_requests(process, answers, examples, golden)
        except Exception as error:  # An answer of an unexpected form can raise any error.
            answers.failure = cause(error)
            with contextlib.suppress(subprocess.TimeoutExpired):
                answers.failure = _end(process.wait(1.0), log.read_text(errors="replace"))
            if time.monotonic() - start >= seconds:
                answers.failure = f"the answers took longer than {seconds:g} s"
        finally:
            timer.cancel()
            process.kill()
            process.wait()
        logging.info("The server of %s logged:\n%s", model, log.read_text(errors="replace"))
    return answers


class _Client:
    def __init__(self, url: str):
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc)

    def request(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request; return the JSON of the response.

        Args:
          method: the HTTP method.
          path: the path after the name of the model.
          body: the body, which JSON can represent; None for a request without a body.

        Raises:
          ServerError: the response is an error.
          OSError: the server does not respond.
          http.client.HTTPException: the server has closed the connection.
          ValueError: the response is not JSON.
        """
        content = None if body is None else json.dumps(body)
        self._connection.request(method, f"/v1/models/{MODEL_NAME}{path}", content)
        response = self._connection.getresponse()
        answer = json.load(response)
        if response.status != http.client.OK:
            signature = f"{body['signature_name']}: " if body else ""
            reason = answer["error"][:_MAX_CHARACTERS]
            raise ServerError(f"{signature}HTTP {response.status}, {reason}")
        return answer

    def scores(self, signature: str, inputs: Sequence[bytes]) -> list[Any]:
        """Return the scores of each input, see `Labels.decide`; NaN if the server returned null.

        Args:
          signature: the signature that is called, in batches.
          inputs: the values of the only input of the signature.

        Raises:
          ServerError: a response is an error, or has another number of outputs.
          OSError: the server does not respond.
          http.client.HTTPException: the server has closed the connection.
          ValueError, KeyError, TypeError: a response has an unexpected form.
        """
        found: list[Any] = []
        for batch in _batches(inputs):
            instances = [{"b64": base64.b64encode(value).decode()} for value in batch]
            body = {"signature_name": signature, "instances": instances}
            rows = self.request("POST", ":predict", body)["predictions"]
            if len(rows) != len(batch):
                raise ServerError(f"{signature}: {len(rows)} outputs for {len(batch)} inputs")
            if rows and "probabilities" in rows[0]:
                found += [list(map(_number, row["probabilities"])) for row in rows]
            else:
                found += [_number(row["probability"]) for row in rows]
        return found


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _send_requests(
    process: subprocess.Popen[bytes],
    answers: Answers,
    examples: Sequence[bytes],
    golden: Sequence[str],
) -> None:
    assert process.stdout is not None
    report_stage("loading the model in a server")
    started = json.loads(process.stdout.readline())
    measured = answers.measured
    measured["load_seconds"] = started["load_seconds"]
    client = _Client(started["url"])
    names = client.request("GET", "/metadata")["metadata"]["signature_def"]["signature_def"]
    if missing := [name for name in _SIGNATURES if name not in names]:
        raise ServerError(f"the model has no signature {' and no '.join(missing)}")
    texts = [example_text(example) for example in examples]
    seconds: list[float] = []
    report_stage("sending single texts to the server")
    for text in texts[:_SINGLE_REQUESTS]:
        if sum(seconds) > _SINGLE_SECONDS:
            break
        start = time.perf_counter()
        answers.by_single += client.scores(PREDICT_TEXT, [text])
        seconds.append(time.perf_counter() - start)
    # The method of the nearest rank.
    measured["p99_ms"] = 1000 * float(np.percentile(seconds, 99, method="inverted_cdf"))
    answers.golden = client.scores(PREDICT_TEXT, [text.encode() for text in golden])
    report_stage("sending batches of texts to the server")
    start = time.perf_counter()
    answers.by_text = client.scores(PREDICT_TEXT, texts)
    measured["reviews_per_second"] = len(texts) / (time.perf_counter() - start)
    answers.by_example = client.scores(SERVING_DEFAULT, examples)
    measured["memory_mb"] = peak_rss(process.pid) / 2**20


def _batches(inputs: Sequence[bytes]) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    for value in inputs:
        if len(batch) == _BATCH or (batch and sum(map(len, batch)) + len(value) > _BATCH_BYTES):
            yield batch
            batch = []
        batch.append(value)
    if batch:
        yield batch


def _start(folder: str, log: Path) -> subprocess.Popen[bytes]:
    # The process of the training may still occupy the memory of a GPU.
    environ = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2", "CUDA_VISIBLE_DEVICES": "-1"}
    with log.open("wb") as errors:
        return subprocess.Popen(
            processes.command(_SERVER, folder),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=environ,
            # In its own session the server does not receive Ctrl-C from the terminal. The command
            # receives it, and ends the server.
            start_new_session=True,
        )


def _end(code: int, log: str) -> str:
    """Return why the server ended, with the last line of its log that names an error.

    Args:
      code: the exit code, or minus the number of the signal.
      log: the log of the server.
    """
    if rejected := _REJECTED.search(log):
        return f"the model {rejected[1][:_MAX_CHARACTERS]}"
    end = f"exit code {code}" if code >= 0 else signal.Signals(-code).name
    # The lines after an exception of TensorFlow name the operation instead of the reason.
    named = [line.strip() for line in log.splitlines() if ERROR_LINE.search(line)]
    return f"the server ended with {end}: {named[-1][:_MAX_CHARACTERS] if named else 'no message'}"
