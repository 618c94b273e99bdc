"""The limits of the machine: each step of the preprocessing alone, without a pipeline.

    python -m benchmarks.machine_limits FILE SCRATCH

prints the result of `measure` as JSON.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.usage import cores

_BATCH = 1024


def measure(file: str, scratch: Path) -> dict[str, Any]:
    """Return the seconds of each step alone, on all cores, and the number of reviews.

    Args:
      file: a file of reviews.
      scratch: a folder for temporary files.

    Returns:
      `reviews`; for each step STEP its seconds, and under STEP_cpu its CPU seconds.
    """
    from preprocessing.reading.columns import Layout
    from preprocessing.reading.pieces import cut_file
    from preprocessing.reading.read import read_batches

    pieces = cut_file(file, Layout("fasttext"))
    reviews = 0
    found: dict[str, Any] = dict.fromkeys(("write", "read", "hash"), 0.0)
    with ThreadPoolExecutor(cores()) as pool:
        found["decompress"] = _seconds(lambda: _decompress(file, pool))
        # One piece at a time is in memory.
        for piece in pieces:
            # Read completely first, so that reading does not affect the time to write.
            batches = list(read_batches(piece, pool))
            folder = scratch / f"written-{piece.number}"
            found["write"] += _seconds_to_write(batches, folder, pool)
            found["read"] += _seconds_to_read(folder)
            shutil.rmtree(folder)
            texts = list(chain.from_iterable(batch.texts for batch in batches))
            reviews += len(texts)
            found["hash"] += _seconds_to_hash(texts)
    wall = {step: float(seconds[0]) for step, seconds in found.items()}
    cpu = {f"{step}_cpu": float(seconds[1]) for step, seconds in found.items()}
    return {"reviews": reviews, **wall, **cpu}


def _seconds(action: Callable[[], Any]) -> np.ndarray:
    """Return the seconds and the CPU seconds of an action."""
    start = np.array([time.monotonic(), time.process_time()])
    action()
    return np.array([time.monotonic(), time.process_time()]) - start


def _decompress(path: str, pool: ThreadPoolExecutor) -> None:
    from preprocessing.fast import bz2_blocks

    with open(path, "rb") as raw:
        for _ in bz2_blocks.read_blocks(raw, 0, pool, 2 * cores(), compiled=True):
            pass


def _seconds_to_write(batches: list[Any], folder: Path, pool: ThreadPoolExecutor) -> np.ndarray:
    from examples.writer import ShardWriter, text_level
    from preprocessing.fast.encode import encode_examples

    folder.mkdir()
    paths = [str(folder / f"{index}.gz") for index in range(2 * cores())]
    writers = [ShardWriter(path, text_level(path), pool) for path in paths]

    def write() -> None:
        for number, batch in enumerate(batches):
            examples = encode_examples({"text": batch.texts, "label": batch.labels})
            writers[number % len(writers)].write(examples)
        for writer in writers:
            writer.close()

    return _seconds(write)


def _seconds_to_read(folder: Path) -> np.ndarray:
    import tensorflow as tf

    files = [str(file) for file in folder.iterdir()]

    def run() -> None:
        records = tf.data.TFRecordDataset(files, "GZIP", num_parallel_reads=cores())
        for _ in records.batch(_BATCH):
            pass

    return _seconds(run)


def _seconds_to_hash(texts: list[bytes]) -> np.ndarray:
    """Return the seconds to hash words and 2-grams of all texts, in the graph of Transform."""
    import tensorflow as tf

    from preprocessing import normalise

    def ids(batch: Any) -> Any:
        return normalise.ngram_ids(normalise.words(batch), 2, 2**20).flat_values

    batches = tf.data.Dataset.from_tensor_slices(texts).batch(_BATCH).cache()
    for _ in batches:
        pass
    hashed = batches.map(ids, num_parallel_calls=cores())

    def run() -> None:
        for _ in hashed:
            pass

    return _seconds(run)


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], Path(sys.argv[2]))))
