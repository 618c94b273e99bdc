"""The peer fastText: a supervised bag of 1-2-grams on all cores.

    python -m benchmarks.peer_fasttext TRAIN TEST [--seed N] [--options JSON] [--compressed]

The files are first prepared as in fastText's own tutorial: lower-cased, with spaces around ASCII
punctuation. The measured time includes reading the prepared file, but not its preparation.
With --compressed the model is also compressed, as in fastText's quantization-results.sh. --options
has arguments of `fasttext.train_supervised`, in addition to or in place of OPTIONS. The threads of
fastText race, so the seed does not determine the model.
"""

from __future__ import annotations

import json
import re
import tempfile
import time
from pathlib import Path
from typing import Any

import fasttext

from benchmarks import usage
from benchmarks.peer_files import main, read_reviews, scores
from core.machine import peak_rss

OPTIONS = {"wordNgrams": 2, "dim": 10, "epoch": 5, "lr": 0.25}
"""The options for Amazon reviews of two classes."""
_FEATURES = 100_000
"""Number of words and n-grams in a compressed model."""
_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")


def prepare(source: str, target: Path) -> int:
    """Write the reviews of `source` in the format of fastText; return their number."""
    count = 0
    with target.open("w", encoding="utf-8", newline="\n") as out:
        for label, text in read_reviews(source):
            out.write(f"__label__{label} {_spaced(text)}\n")
            count += 1
    return count


def _spaced(text: str) -> str:
    return " ".join(_PUNCTUATION.sub(r" \1 ", text.lower()).split())


def fit(prepared: Path, seed: int = 0, **options: Any) -> Any:
    """Return a model that was trained on a file of `prepare`.

    Args:
      prepared: the file.
      seed: the seed.
      options: arguments of `fasttext.train_supervised` besides OPTIONS.
    """
    return fasttext.train_supervised(
        str(prepared), **(OPTIONS | options), seed=seed, thread=usage.cores(), verbose=0
    )


def run(
    train: str, test: str, *, seed: int = 0, options: str = "{}", compressed: bool = False
) -> dict[str, Any]:
    """Train, and evaluate on `test`.

    Args:
      train: the file to train on, see `read_reviews`.
      test: the file to test on.
      seed: the seed.
      options: arguments of `fasttext.train_supervised`, as JSON.
      compressed: whether the model is compressed.

    Returns:
      seconds, cpu: seconds and CPU seconds of the training.
      examples: number of reviews in `train`.
      epochs: passes over them.
      the `scores` on `test`.
      peak_rss: peak memory of this process in bytes.
      size: size of the model's file in bytes.
    """
    with tempfile.TemporaryDirectory() as folder:
        prepared = Path(folder) / "train.txt"
        examples = prepare(train, prepared)
        start, cpu = time.perf_counter(), time.process_time()
        model = fit(prepared, seed, **json.loads(options))
        if compressed:
            model.quantize(str(prepared), cutoff=_FEATURES, retrain=True, qnorm=True, verbose=0)
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
        peak = peak_rss()
        labels, texts = zip(*read_reviews(test), strict=True)
        answers = [_answer(model, text) for text in texts]
        written = Path(folder) / "model"
        model.save_model(str(written))
        size = written.stat().st_size
    return {
        "seconds": seconds,
        "cpu": cpu,
        "examples": examples,
        "epochs": (OPTIONS | json.loads(options))["epoch"],
        **scores(labels, answers),
        "peak_rss": peak,
        "size": size,
    }


def _answer(model: Any, text: str) -> int:
    """Return the predicted label; fastText predicts none for an empty text, which counts as 0."""
    # The method of the package fails with NumPy 2, and this is the function that it calls.
    found = model.f.predict(f"{_spaced(text)}\n", 1, 0.0, "strict")
    return int(found[0][1].removeprefix("__label__")) if found else 0


if __name__ == "__main__":
    main(run, __doc__, options={"default": "{}"}, compressed={"action": "store_true"})
