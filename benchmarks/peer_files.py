"""The common part of the peers: their files, scores and arguments."""

from __future__ import annotations

import argparse
import bz2
import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

_LABEL = re.compile(r"__label__([1-9]\d*)")


def read_reviews(path: str) -> Iterator[tuple[int, str]]:
    """Yield (label, text) for each line of a file in fastText's format, plain or .bz2.

    The label N of `__label__N` is N - 1, so Kaggle's labels are 0 and 1.

    Raises:
      ValueError: a line has no `__label__N` with a positive N.
    """
    with _open(path) as lines:
        for number, line in enumerate(lines, 1):
            label, _, text = line.rstrip("\n").partition(" ")
            found = _LABEL.fullmatch(label)
            if found is None:
                raise ValueError(f"{path}:{number}: no label")
            yield int(found[1]) - 1, text


def scores(labels: Sequence[int], predicted: Sequence[int]) -> dict[str, float]:
    """Return the scores of predictions.

    Args:
      labels: the label of each review, from 0.
      predicted: the predicted label of each review.

    Returns:
      accuracy; macro_f1: the mean of the F1 of the classes that occur in `labels`;
      mean_absolute_error: the mean difference of labels, which has a meaning for ordered classes.
    """
    right, answer = np.asarray(labels), np.asarray(predicted)
    classes = int(max(right.max(), answer.max())) + 1
    confusion = np.bincount(right * classes + answer, minlength=classes**2)
    confusion = confusion.reshape(classes, classes)
    occurring = confusion.sum(axis=1) > 0
    f1 = 2 * confusion.diagonal() / np.maximum(confusion.sum(axis=0) + confusion.sum(axis=1), 1)
    return {
        "accuracy": float(np.mean(right == answer)),
        "macro_f1": float(f1[occurring].mean()),
        "mean_absolute_error": float(np.abs(right - answer).mean()),
    }


def _open(path: str) -> IO[str]:
    opened = bz2.open if Path(path).suffix == ".bz2" else open
    return opened(path, "rt", encoding="utf-8", newline="\n")


def main(run: Callable[..., dict[str, Any]], description: str | None, **options: Any) -> None:
    """Call a function with the arguments of the command line, and print its figures as JSON.

    Args:
      run: a function of the train and the test file, and of the options as keywords.
      description: the description of the command line.
      options: name of an option -> the keywords of `ArgumentParser.add_argument`.
    """
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("train", help="reviews to train on, fastText format")
    parser.add_argument("test", help="reviews to test on")
    parser.add_argument("--seed", type=int, default=0)
    for name, arguments in options.items():
        parser.add_argument(f"--{name}", **arguments)
    print(json.dumps(run(**vars(parser.parse_args()))))
