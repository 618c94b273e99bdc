"""The peer scikit-learn: TF-IDF of 1-2-grams and logistic regression.

    python -m benchmarks.peer_sklearn TRAIN TEST

The measured time is that of `fit` on texts in memory: vectorizing, and solving to convergence.
"""

from __future__ import annotations

import json
import sys
import time

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from benchmarks.peer_files import read_reviews
from trainer_module.loop.memory import peak_rss

_WORD = r"[!-/:-@\[-`{-~]|[^\s!-/:-@\[-`{-~]+"
"""The words as for fastText: a punctuation mark is a word."""


def main(train: str, test: str) -> None:
    labels, texts = zip(*read_reviews(train), strict=True)
    classifier = make_pipeline(
        TfidfVectorizer(ngram_range=(1, 2), token_pattern=_WORD, min_df=2, sublinear_tf=True),
        # lbfgs, the default solver, stops a hundred iterations early at its default tolerance.
        LogisticRegression(C=10, solver="liblinear", dual=True),
    )
    start = time.perf_counter()
    classifier.fit(texts, labels)
    seconds = time.perf_counter() - start
    peak = peak_rss()
    test_labels, test_texts = zip(*read_reviews(test), strict=True)
    figures = {
        "seconds": seconds,
        "examples": len(texts),
        "accuracy": classifier.score(test_texts, test_labels),
        "peak_rss": peak,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main(*sys.argv[1:])
