"""The peer scikit-learn: TF-IDF of 1-2-grams and logistic regression.

    python -m benchmarks.peer_sklearn TRAIN TEST [--seed N]

The measured time is that of `fit` on texts in memory: vectorizing, and solving to convergence.
The seed determines the order of the solver.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import joblib
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline

from benchmarks.peer_files import main, read_reviews
from core.machine import peak_rss

_WORD = r"[!-/:-@\[-`{-~]|[^\s!-/:-@\[-`{-~]+"
"""The words as for fastText: a punctuation mark is a word."""


def run(train: str, test: str, *, seed: int = 0) -> dict[str, Any]:
    """Train, and evaluate on `test`; see `benchmarks.peer_fasttext.run` for the figures."""
    labels, texts = zip(*read_reviews(train), strict=True)
    classifier = make_pipeline(
        TfidfVectorizer(ngram_range=(1, 2), token_pattern=_WORD, min_df=2, sublinear_tf=True),
        # lbfgs, the default solver, stops a hundred iterations early at its default tolerance.
        LogisticRegression(C=10, solver="liblinear", dual=True, random_state=seed),
    )
    start = time.perf_counter()
    classifier.fit(texts, labels)
    seconds = time.perf_counter() - start
    peak = peak_rss()
    test_labels, test_texts = zip(*read_reviews(test), strict=True)
    return {
        "seconds": seconds,
        "examples": len(texts),
        "accuracy": classifier.score(test_texts, test_labels),
        "peak_rss": peak,
        "size": _size(classifier),
    }


def _size(classifier: Pipeline) -> int:
    """Return the size of the file that scikit-learn's documentation recommends, in bytes."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.joblib"
        joblib.dump(classifier, file)
        return file.stat().st_size


if __name__ == "__main__":
    main(run, __doc__)
