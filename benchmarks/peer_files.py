"""The common part of the peers; its imports add little to their measured memory."""

from __future__ import annotations

import argparse
import bz2
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

_LABELS = {"__label__1": 0, "__label__2": 1}


def read_reviews(path: str) -> Iterator[tuple[int, str]]:
    """Yield (label, text) for each line of a file in Kaggle's fastText format, plain or .bz2.

    Raises:
      ValueError: a line has no `__label__1` or `__label__2`.
    """
    with _open(path) as lines:
        for number, line in enumerate(lines, 1):
            label, _, text = line.rstrip("\n").partition(" ")
            if label not in _LABELS:
                raise ValueError(f"{path}:{number}: no label")
            yield _LABELS[label], text


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
