"""The peer fastText: a supervised bag of 1-2-grams on all cores.

    python -m benchmarks.peer_fasttext TRAIN TEST

The files are first prepared as in fastText's own tutorial: lower-cased, with spaces around ASCII
punctuation. The measured time includes reading the prepared file, but not its preparation.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
import time
from pathlib import Path

import fasttext

from benchmarks import usage
from benchmarks.peer_files import read_reviews
from trainer_module.loop.memory import peak_rss

EPOCHS = 5
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


def main(train: str, test: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        prepared = Path(folder) / "train.txt"
        held_out = Path(folder) / "test.txt"
        examples = prepare(train, prepared)
        prepare(test, held_out)
        start, cpu = time.perf_counter(), time.process_time()
        model = fasttext.train_supervised(
            str(prepared),
            wordNgrams=2,
            dim=10,
            epoch=EPOCHS,
            lr=0.25,
            thread=usage.cores(),
            verbose=0,
        )
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
        peak = peak_rss()
        # One label a review: precision at 1 is the accuracy.
        _, accuracy, _ = model.test(str(held_out))
    figures = {
        "seconds": seconds,
        "cpu": cpu,
        "examples": examples,
        "epochs": EPOCHS,
        "accuracy": accuracy,
        "peak_rss": peak,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main(*sys.argv[1:])
