"""Try a SavedModel in this process, whose argument is FOLDER.

FOLDER has `request.json` (see `Request`) and `examples.tfrecord`, serialized tf.Examples. The probe
writes its results to `answer.json` after each stage, so a model that crashes or hangs leaves the
results of the earlier stages. It prints `stage NAME` on standard output when a stage begins. It
imports what a server of the model would, and no TFX.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf

from core.files import without_magic
from preprocessing import features
from trainer_module.cluster.resources import peak_rss

REQUEST, ANSWER, EXAMPLES = "request.json", "answer.json", "examples.tfrecord"
"""The files in the folder."""
STAGE = "stage "
"""The beginning of a line on standard output that names a stage."""
EXAMPLE, TEXT, TRANSFORM = "serving_default", "predict_text", "transform_features"
SIGNATURES = (EXAMPLE, TEXT, TRANSFORM)
"""The signatures that every model has."""
NGRAMS = "predict_ngrams"
"""A signature that only some models have; the evaluation and the server call it if it exists."""
BATCH = 64
"""Reviews in a batch, for the throughput."""
_MEBIBYTE = 2**20
_SINGLE_REQUESTS = 300
_SINGLE_SECONDS = 3.0
_FEWEST_REQUESTS = 5

Predict = Callable[[Sequence[bytes]], list[float]]
"""Serialized tf.Examples or texts -> the probability of each being positive."""


@dataclasses.dataclass(frozen=True)
class Request:
    """The request to the probe.

    Attributes:
      model: folder or URL of the SavedModel.
      golden: the texts of the golden sentences.
    """

    model: str
    golden: list[str]


@dataclasses.dataclass
class Answer:
    """The results of a probe; None or empty for a stage that it has not reached.

    Attributes:
      signatures: the names of the model's signatures.
      load_seconds: seconds until the model is loaded and each signature has answered once.
      p99_ms: the p99 latency of single requests to `predict_text`.
      reviews_per_second: the throughput of `predict_text` in batches.
      memory_mb: greatest resident memory of the process in MiB.
      by_example: probability of each Example by `serving_default`.
      by_text: probability of the text of each Example by `predict_text`, in batches.
      by_single: probability of the first texts by `predict_text`, one in a request.
      by_ngrams: probability of the text of each Example by `predict_ngrams`, in batches; empty if
        the model does not have this signature.
      golden: probability of each golden sentence by `predict_text`.
      transformed: number of Examples for which `transform_features` returned features.
      finished: True if no stage is missing.
    """

    signatures: list[str] = dataclasses.field(default_factory=list)
    load_seconds: float | None = None
    p99_ms: float | None = None
    reviews_per_second: float | None = None
    memory_mb: float | None = None
    by_example: list[float] = dataclasses.field(default_factory=list)
    by_text: list[float] = dataclasses.field(default_factory=list)
    by_single: list[float] = dataclasses.field(default_factory=list)
    by_ngrams: list[float] = dataclasses.field(default_factory=list)
    golden: list[float] = dataclasses.field(default_factory=list)
    transformed: int | None = None
    finished: bool = False


def probe(folder: Path) -> None:
    """Run all stages; a model without one of the signatures ends the probe after the first."""
    request = Request(**json.loads((folder / REQUEST).read_text(encoding="utf-8")))
    # The Examples are read first, so `load_seconds` does not include the time to read them.
    dataset = tf.data.TFRecordDataset(str(folder / EXAMPLES))
    examples: list[bytes] = list(dataset.as_numpy_iterator())
    texts = [_text(tf.train.Example.FromString(example)) for example in examples]
    answer = Answer()

    def begin(stage: str) -> None:
        answer.memory_mb = peak_rss() / _MEBIBYTE
        _write(answer, folder / ANSWER)
        print(f"{STAGE}{stage}", flush=True)

    begin("loading the model")
    start = time.perf_counter()
    model = tf.saved_model.load(without_magic(request.model))
    answer.signatures = sorted(model.signatures)
    if not set(SIGNATURES) <= set(answer.signatures):
        begin("end")
        return
    by_example = _predictor(model.signatures[EXAMPLE])
    by_text = _predictor(model.signatures[TEXT])
    begin(f"the first answer of {TEXT}")
    by_text(texts[:1])
    begin(f"the first answer of {EXAMPLE}")
    by_example(examples[:1])
    begin(f"the first answer of {TRANSFORM}")
    _transformed(model.signatures[TRANSFORM], examples[:1])
    if NGRAMS in answer.signatures:
        begin(f"the first answer of {NGRAMS}")
        by_ngrams = _ngram_predictor(model, request.model)
        by_ngrams(texts[:1])
    answer.load_seconds = time.perf_counter() - start
    begin("single requests")
    answer.by_single, answer.p99_ms = _single_requests(by_text, texts)
    begin(f"the golden sentences by {TEXT}")
    answer.golden = by_text([text.encode() for text in request.golden])
    begin(f"batches by {TEXT}")
    start = time.perf_counter()
    answer.by_text = _in_batches(by_text, texts)
    answer.reviews_per_second = len(texts) / (time.perf_counter() - start)
    begin(f"batches by {EXAMPLE}")
    answer.by_example = _in_batches(by_example, examples)
    if NGRAMS in answer.signatures:
        begin(f"batches by {NGRAMS}")
        answer.by_ngrams = _in_batches(by_ngrams, texts)
    begin(f"a batch by {TRANSFORM}")
    answer.transformed = _transformed(model.signatures[TRANSFORM], examples[:BATCH])
    answer.finished = True
    begin("end")


def percentile(values: Sequence[float], fraction: float) -> float:
    """Return the value that `fraction` of all values do not exceed (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(math.ceil(fraction * len(ordered)) - 1, 0)]


def _text(example: Any) -> bytes:
    text: bytes = example.features.feature[features.TEXT].bytes_list.value[0]
    return text


def _predictor(signature: Any) -> Predict:
    [name] = signature.structured_input_signature[1]

    def predict(inputs: Sequence[bytes]) -> list[float]:
        outputs = signature(**{name: tf.constant(list(inputs), tf.string)})
        # A server also converts both outputs to NumPy arrays.
        outputs["label"].numpy()
        probabilities: list[float] = outputs["probability"].numpy().tolist()
        return probabilities

    return predict


def _ngram_predictor(model: Any, folder: str) -> Predict:
    from preprocessing.fast.ngrams import ngram_ids
    from serving.predict_text import predict_text_of

    predict_text = predict_text_of(model, folder)

    def predict(texts: Sequence[bytes]) -> list[float]:
        outputs = predict_text.from_ngrams(ngram_ids(texts, *predict_text.ngram_settings))
        probabilities: list[float] = outputs["probability"].tolist()
        return probabilities

    return predict


def _transformed(signature: Any, examples: Sequence[bytes]) -> int:
    """Return the number of Examples in every output of `transform_features`."""
    [name] = signature.structured_input_signature[1]
    outputs = signature(**{name: tf.constant(list(examples), tf.string)})
    return min(len(value.numpy()) for value in outputs.values())


def _single_requests(predict: Predict, texts: Sequence[bytes]) -> tuple[list[float], float]:
    """Return the probabilities of the first texts, and the p99 latency in milliseconds."""
    probabilities: list[float] = []
    seconds: list[float] = []
    end = time.perf_counter() + _SINGLE_SECONDS
    for text in texts[:_SINGLE_REQUESTS]:
        start = time.perf_counter()
        if start > end and len(seconds) >= _FEWEST_REQUESTS:
            break
        probabilities += predict([text])
        seconds.append(time.perf_counter() - start)
    return probabilities, percentile(seconds, 0.99) * 1000


def _in_batches(predict: Predict, inputs: Sequence[bytes]) -> list[float]:
    found = []
    for start in range(0, len(inputs), BATCH):
        found += predict(inputs[start : start + BATCH])
    return found


def _write(answer: Answer, path: Path) -> None:
    # The file is replaced atomically, so a crash leaves no incomplete file.
    scratch = path.with_suffix(".new")
    scratch.write_text(json.dumps(dataclasses.asdict(answer)), encoding="utf-8")
    os.replace(scratch, path)


if __name__ == "__main__":
    probe(Path(sys.argv[1]))
    sys.stdout.flush()
    # Threads of the model, or of TensorFlow, must not delay the end.
    os._exit(0)
