"""The peer fastText: a supervised bag of 1-2-grams on all cores.

    python -m benchmarks.peer_fasttext TRAIN TEST [--seed N] [--compressed]

The files are first prepared as in fastText's own tutorial: lower-cased, with spaces around ASCII
punctuation. The measured time includes reading the prepared file, but not its preparation.
With --compressed the model is also compressed, as in fastText's quantization-results.sh. The
threads of fastText race, so the seed does not determine the model.
"""

from __future__ import annotations

import re
import tempfile
import time
from pathlib import Path
from typing import Any

import fasttext

from benchmarks import usage
from benchmarks.peer_files import main, read_reviews
from core.machine import peak_rss

EPOCHS = 5
_FEATURES = 100_000
"""Number of words and n-grams in a compressed model."""
_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")


def prepare(source: str, target: Path) -> int:
    """Write the reviews of `source` in the format of fastText; return their number."""
    count = 0
    with target.open("w", encoding="utf-8", newline="\n") as out:
        for label, text in read_reviews(source):
            spaced = _PUNCTUATION.sub(r" \1 ", text.lower())
            out.write(f"__label__{label} {' '.join(spaced.split())}\n")
            count += 1
    return count


def fit(prepared: Path, seed: int = 0) -> Any:
    """Return a model that was trained on a file of `prepare`."""
    options = {"wordNgrams": 2, "dim": 10, "epoch": EPOCHS, "lr": 0.25}
    return fasttext.train_supervised(
        str(prepared), **options, seed=seed, thread=usage.cores(), verbose=0
    )


def run(train: str, test: str, *, seed: int = 0, compressed: bool = False) -> dict[str, Any]:
    """Train, and evaluate on `test`.

    Returns:
      seconds, cpu: seconds and CPU seconds of the training.
      examples: number of reviews in `train`.
      epochs: passes over them.
      accuracy: accuracy on `test`.
      peak_rss: peak memory of this process in bytes.
      size: size of the model's file in bytes.
    """
    with tempfile.TemporaryDirectory() as folder:
        prepared = Path(folder) / "train.txt"
        held_out = Path(folder) / "test.txt"
        examples = prepare(train, prepared)
        prepare(test, held_out)
        start, cpu = time.perf_counter(), time.process_time()
        model = fit(prepared, seed)
        if compressed:
            model.quantize(str(prepared), cutoff=_FEATURES, retrain=True, qnorm=True, verbose=0)
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
        peak = peak_rss()
        # One label a review: precision at 1 is the accuracy.
        _, accuracy, _ = model.test(str(held_out))
        written = Path(folder) / "model"
        model.save_model(str(written))
        size = written.stat().st_size
    return {
        "seconds": seconds,
        "cpu": cpu,
        "examples": examples,
        "epochs": EPOCHS,
        "accuracy": accuracy,
        "peak_rss": peak,
        "size": size,
    }


if __name__ == "__main__":
    main(run, __doc__, compressed={"action": "store_true"})
