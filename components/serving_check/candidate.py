"""Serve a candidate with the product's own server, and send it the requests of a client.

The model is loaded, batched and called as in production, and the memory and the latency include
those of the HTTP server.
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import http.client
import itertools
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
from typing import IO, Any
from urllib.parse import urlsplit

import psutil
import tensorflow as tf
from absl import logging
from tfx.utils import io_utils

from core import processes
from preprocessing import features
from serving.rest import server
from serving.rest.settings import MODEL_NAME
from trainer_module.cluster.resources import peak_rss

EXAMPLE, TEXT, TRANSFORM = "serving_default", "predict_text", "transform_features"
SIGNATURES = (EXAMPLE, TEXT, TRANSFORM)
"""The signatures that every model has."""
BATCH = 64
"""Reviews in a request, for the throughput."""
_SERVER = server.__name__
_TIMEOUT_SECONDS = 600.0
_SINGLE_REQUESTS = 300
_SINGLE_SECONDS = 3.0
_FEWEST_REQUESTS = 5
_BATCH_BYTES = 2 * 2**20
"""Most bytes of a batch, of which the Base64 fits into the greatest body of a request."""
_MEBIBYTE = 2**20
_REJECTED = re.compile(r"/1 is rejected: it (.+)")
"""The line that the server logs for a model that it cannot load."""
_ERROR_LINE = re.compile(r"\b\w*(Error|Exception)\b|Check failed|[Ff]atal")
_LONGEST_LINE = 300


@dataclasses.dataclass
class Answers:
    """The answers of a candidate; None or empty for what it has not answered.

    Attributes:
      signatures: the names of the model's signatures.
      load_seconds: seconds until the model is loaded and each signature has answered once.
      p99_ms: the p99 latency of requests with one text.
      reviews_per_second: the throughput of `predict_text` in batches.
      memory_mb: greatest resident memory of the server in MiB.
      by_example: probability of each Example by `serving_default`, of the last requests.
      by_text: probability of the text of each Example by `predict_text`, in batches.
      by_single: probability of the first texts by `predict_text`, one in a request.
      golden: probability of each golden sentence by `predict_text`.
    """

    signatures: list[str] = dataclasses.field(default_factory=list)
    load_seconds: float | None = None
    p99_ms: float | None = None
    reviews_per_second: float | None = None
    memory_mb: float | None = None
    by_example: list[float] = dataclasses.field(default_factory=list)
    by_text: list[float] = dataclasses.field(default_factory=list)
    by_single: list[float] = dataclasses.field(default_factory=list)
    golden: list[float] = dataclasses.field(default_factory=list)


def try_candidate(
    model: str, examples: Sequence[bytes], golden: Sequence[str], seconds: float = _TIMEOUT_SECONDS
) -> tuple[Answers, str]:
    """Serve a model in a new process, on the CPU, and send it requests.

    Args:
      model: folder or URL of the SavedModel.
      examples: serialized tf.Examples.
      golden: the texts of the golden sentences.
      seconds: time until the process is killed.

    Returns:
      The answers, and the reason for which some are missing; empty if none is. A model without one
      of the signatures gets no request, which is no such reason.
    """
    answers, failure = Answers(), ""
    with tempfile.TemporaryDirectory(prefix="serving_check_") as folder:
        io_utils.copy_dir(model, f"{folder}/1")
        log = Path(folder) / "log"
        with log.open("wb") as errors:
            process = _start(folder, errors)
        start = time.monotonic()
        timer = threading.Timer(seconds, process.kill)
        timer.start()
        try:
            _send_requests(process, answers, examples, golden)
        except (
            *(OSError, http.client.HTTPException, psutil.Error),
            # An answer of another form.
            *(ValueError, KeyError, TypeError),
        ) as error:
            failure = str(error)
            if not isinstance(error, _RefusedError):
                failure = f"{type(error).__name__}: {error}"
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(1.0)
                    failure = _end(process.returncode, log.read_text(errors="replace"))
        finally:
            timer.cancel()
            process.kill()
            process.wait()
        logging.info("The server of %s logged:\n%s", model, log.read_text(errors="replace"))
    if failure and time.monotonic() - start >= seconds:
        failure = f"the answers took longer than {seconds:g} s"
    return answers, failure


def percentile(values: Sequence[float], fraction: float) -> float:
    """Return the value that `fraction` of all values do not exceed (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(math.ceil(fraction * len(ordered)) - 1, 0)]


class _RefusedError(ValueError):
    """The server answered with an error."""


class _Client:
    """A connection to the server."""

    def __init__(self, url: str):
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc)

    def request(self, method: str, path: str, body: Any = None) -> Any:
        """Return the JSON of the answer to a request below the model.

        Raises:
          _RefusedError: the answer is an error.
        """
        content = None if body is None else json.dumps(body)
        self._connection.request(method, f"/v1/models/{MODEL_NAME}{path}", content)
        response = self._connection.getresponse()
        answer = json.load(response)
        if response.status != http.client.OK:
            raise _RefusedError(f"HTTP {response.status}, {answer['error'][:_LONGEST_LINE]}")
        return answer

    def rows(self, signature: str, inputs: Sequence[bytes]) -> list[Any]:
        """Return the outputs of a signature for each input."""
        instances = [{"b64": base64.b64encode(value).decode()} for value in inputs]
        body = {"signature_name": signature, "instances": instances}
        try:
            found: list[Any] = self.request("POST", ":predict", body)["predictions"]
        except _RefusedError as error:
            raise _RefusedError(f"{signature}: {error}") from None
        if len(found) != len(inputs):
            raise _RefusedError(f"{signature}: {len(found)} outputs for {len(inputs)} inputs")
        return found

    def probabilities(self, signature: str, inputs: Sequence[bytes]) -> list[float]:
        """Return the probability of each input, in batches; NaN is null in the JSON."""
        rows = [row for batch in _batches(inputs) for row in self.rows(signature, batch)]
        found = [row["probability"] for row in rows]
        return [math.nan if value is None else float(value) for value in found]


def _send_requests(
    process: subprocess.Popen[bytes],
    answers: Answers,
    examples: Sequence[bytes],
    golden: Sequence[str],
) -> None:
    texts = [_text(example) for example in examples]
    assert process.stdout is not None
    started = json.loads(process.stdout.readline())
    answers.load_seconds = started["load_seconds"]
    answers.memory_mb = peak_rss(process.pid) / _MEBIBYTE
    client = _Client(started["url"])
    metadata = client.request("GET", "/metadata")["metadata"]
    names = metadata["signature_def"]["signature_def"]
    # TensorFlow adds __saved_model_init_op.
    answers.signatures = sorted(name for name in names if not name.startswith("__"))
    if not set(SIGNATURES) <= set(answers.signatures):
        return
    _send_single_requests(client, answers, texts)
    answers.golden = client.probabilities(TEXT, [text.encode() for text in golden])
    start = time.perf_counter()
    answers.by_text = client.probabilities(TEXT, texts)
    answers.reviews_per_second = len(texts) / (time.perf_counter() - start)
    for batch in itertools.islice(_batches(examples), 1):
        client.rows(TRANSFORM, batch)
    answers.by_example = client.probabilities(EXAMPLE, examples)
    answers.memory_mb = peak_rss(process.pid) / _MEBIBYTE


def _send_single_requests(client: _Client, answers: Answers, texts: Sequence[bytes]) -> None:
    seconds: list[float] = []
    end = time.perf_counter() + _SINGLE_SECONDS
    for text in texts[:_SINGLE_REQUESTS]:
        start = time.perf_counter()
        if start > end and len(seconds) >= _FEWEST_REQUESTS:
            break
        answers.by_single += client.probabilities(TEXT, [text])
        seconds.append(time.perf_counter() - start)
    if seconds:
        answers.p99_ms = percentile(seconds, 0.99) * 1000


def _batches(inputs: Sequence[bytes]) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    for value in inputs:
        if len(batch) == BATCH or (batch and sum(map(len, batch)) + len(value) > _BATCH_BYTES):
            yield batch
            batch = []
        batch.append(value)
    if batch:
        yield batch


def _text(example: bytes) -> bytes:
    found = tf.train.Example.FromString(example).features.feature[features.TEXT]
    text: bytes = found.bytes_list.value[0]
    return text


def _start(folder: str, errors: IO[bytes]) -> subprocess.Popen[bytes]:
    environ = {
        **os.environ,
        "TF_CPP_MIN_LOG_LEVEL": "2",
        # A GPU of this machine may be full of the memory of the training's process.
        "CUDA_VISIBLE_DEVICES": "-1",
    }
    return subprocess.Popen(
        processes.command(_SERVER, folder),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=errors,
        env=environ,
        # Only the command receives Ctrl-C from the terminal, and ends this process.
        start_new_session=True,
    )


def _end(code: int, log: str) -> str:
    """Return why the server has ended, with the last line of its log that names an error."""
    rejected = _REJECTED.search(log)
    if rejected:
        return f"the model {rejected[1][:_LONGEST_LINE]}"
    end = f"exit code {code}" if code >= 0 else signal.Signals(-code).name
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    # TensorFlow prints the operation, not the reason, in the lines after an exception.
    named = [line for line in lines if _ERROR_LINE.search(line)] or lines
    return f"the server ended with {end}: {named[-1][:_LONGEST_LINE] if named else 'no message'}"
