"""The candidate's predictions for a sample of the Examples, which the serving check compares."""

from __future__ import annotations

import hashlib
import heapq
import json
import os
import zlib
from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np
from tfx.dsl.io import fileio

FILE = "sampled_predictions.json"
"""The file in a ModelEvaluation: digest of an Example -> prediction."""
SIZE = 1000
"""Examples in the sample: those with the smallest hash, as in `components.sample`."""

Sampled = tuple[int, str, float]
"""The hash of an Example, its digest, and its prediction."""


def sample(examples: Sequence[bytes], predictions: np.ndarray) -> list[Sampled]:
    """Return the sample of a batch.

    Args:
      examples: serialized tf.Examples.
      predictions: the prediction for each, shape [batch].
    """
    hashes = np.fromiter(map(zlib.crc32, examples), np.int64, len(examples))
    return [
        (int(hashes[number]), _digest(examples[number]), float(predictions[number]))
        for number in np.argsort(hashes, kind="stable")[:SIZE].tolist()
    ]


def merge(samples: Iterable[list[Sampled]]) -> list[Sampled]:
    """Return the sample of all batches of which `samples` are the samples."""
    return heapq.nsmallest(SIZE, chain.from_iterable(samples))


def write(found: Sequence[Sampled], evaluation: str) -> None:
    """Write a sample to the folder of a ModelEvaluation."""
    fileio.makedirs(evaluation)
    with fileio.open(os.path.join(evaluation, FILE), "w") as file:
        file.write(json.dumps({digest: prediction for _, digest, prediction in found}))


def read(evaluation: str, examples: Sequence[bytes]) -> dict[int, float]:
    """Return the index of an Example -> its prediction in the evaluation.

    An Example outside the sample is missing, and so are all if TFX's own executor evaluated.
    """
    path = os.path.join(evaluation, FILE)
    if not fileio.exists(path):
        return {}
    with fileio.open(path) as file:
        stored: dict[str, float] = json.loads(file.read())
    digests = map(_digest, examples)
    return {n: stored[digest] for n, digest in enumerate(digests) if digest in stored}


def _digest(example: bytes) -> str:
    return hashlib.blake2b(example, digest_size=16).hexdigest()
