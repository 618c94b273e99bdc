"""The peer scikit-learn: TF-IDF of 1-2-grams and logistic regression.

    python -m benchmarks.peer_sklearn TRAIN TEST [--seed N] [--options JSON]

The measured time is that of `fit` on texts in memory: vectorizing, and solving to convergence.
The seed determines the order of the solver. --options replaces values of OPTIONS.
"""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from typing import Any

import joblib
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline, make_union

from benchmarks.peer_files import main, read_reviews, scores
from core.machine import peak_rss

_WORD = r"[!-/:-@\[-`{-~]|[^\s!-/:-@\[-`{-~]+"
"""The words as for fastText: a punctuation mark is a word."""

OPTIONS: dict[str, Any] = {"words": 2, "min_df": 2, "characters": None, "C": 10}
"""The options for Amazon reviews of two classes: the longest n-gram of words; the minimum number of
reviews that contain an n-gram; the shortest and the longest n-gram of characters within words, or
None; the inverse of the regularisation."""


def run(train: str, test: str, *, seed: int = 0, options: str = "{}") -> dict[str, Any]:
    """Train, and evaluate on `test`; see `benchmarks.peer_fasttext.run` for the figures."""
    chosen = OPTIONS | json.loads(options)
    labels, texts = zip(*read_reviews(train), strict=True)
    common = {"min_df": chosen["min_df"], "sublinear_tf": True}
    vectorizers = [TfidfVectorizer(ngram_range=(1, chosen["words"]), token_pattern=_WORD, **common)]
    if chosen["characters"]:
        span = tuple(chosen["characters"])
        vectorizers.append(TfidfVectorizer(analyzer="char_wb", ngram_range=span, **common))
    classifier = make_pipeline(
        make_union(*vectorizers),
        # lbfgs, the default solver, stops a hundred iterations early at its default tolerance.
        LogisticRegression(C=chosen["C"], solver="liblinear", dual=True, random_state=seed),
    )
    start = time.perf_counter()
    classifier.fit(texts, labels)
    seconds = time.perf_counter() - start
    peak = peak_rss()
    test_labels, test_texts = zip(*read_reviews(test), strict=True)
    return {
        "seconds": seconds,
        "examples": len(texts),
        **scores(test_labels, classifier.predict(test_texts)),
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
    main(run, __doc__, options={"default": "{}"})
