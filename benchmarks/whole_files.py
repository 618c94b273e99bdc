"""Create archives with as many different reviews as Kaggle's set, from fewer labelled reviews.

    python -m benchmarks.whole_files FROM TO TRAIN TEST

FROM contains train.ft.txt and test.ft.txt in Kaggle's fastText format, plain or .bz2. The script
writes train.ft.txt.bz2 with TRAIN reviews and test.ft.txt.bz2 with TEST reviews to TO. Each review
has a title and sentences of several reviews of the same class and file, about 80 words as in
Kaggle's set, and no text occurs twice. The same arguments always create the same archives.
"""

from __future__ import annotations

import argparse
import bz2
import random
import re
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

from benchmarks.peer_files import read_reviews
from benchmarks.usage import cores

NAMES = ("train.ft.txt.bz2", "test.ft.txt.bz2")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_SENTENCE_WORDS = range(3, 61)
_REVIEW_WORDS = (10, 190, 40)
"""The minimum, the maximum and the most frequent number of words; the mean is 80."""
_TITLE_LENGTH = 100
_LINES = 10_000
"""Number of lines that are compressed together."""
_TRIES = 1000


class Sentences:
    """The titles and the sentences of the reviews of one class."""

    def __init__(self) -> None:
        self._titles: list[str] = []
        self._sentences: list[tuple[str, int]] = []

    def add(self, text: str) -> None:
        """Add the parts of a review."""
        title, colon, body = text.partition(": ")
        if colon and len(title) <= _TITLE_LENGTH:
            self._titles.append(title)
        else:
            body = text
        for sentence in _SENTENCE_END.split(body):
            words = len(sentence.split())
            if words in _SENTENCE_WORDS:
                self._sentences.append((sentence, words))

    def review(self, dice: random.Random) -> str:
        """Return a review of a random number of words."""
        wanted = dice.triangular(*_REVIEW_WORDS)
        title = dice.choice(self._titles) if self._titles else ""
        chosen: list[str] = []
        words = len(title.split())
        # A review is as often half a sentence too long as half a sentence too short.
        while True:
            sentence, length = dice.choice(self._sentences)
            if chosen and words + length / 2 > wanted:
                break
            chosen.append(sentence)
            words += length
        body = " ".join(chosen)
        return f"{title}: {body}" if title else body


def recombined(file: Path, count: int, seen: set[int], seed: int) -> Iterator[bytes]:
    """Yield lines in Kaggle's fastText format.

    Args:
      file: labelled reviews of both classes.
      count: number of lines.
      seen: hashes of texts that must not occur. The hashes of the new texts are added.
      seed: seed of the choice.

    Raises:
      ValueError: a class has no sentence, or there are too few for `count` different reviews.
    """
    classes = (Sentences(), Sentences())
    for label, text in read_reviews(str(file)):
        classes[label].add(text)
    dice = random.Random(seed)
    for _ in range(count):
        label = dice.randrange(2)
        for _ in range(_TRIES):
            text = classes[label].review(dice)
            if hash(text) not in seen:
                break
        else:
            raise ValueError(f"{file}: too few sentences for {count} different reviews")
        seen.add(hash(text))
        yield f"__label__{label + 1} {text}\n".encode()


def write_archive(lines: Iterable[bytes], target: Path) -> None:
    """Write lines to a .bz2 file, compressed on all cores."""
    rest = iter(lines)
    chunks = iter(lambda: b"".join(islice(rest, _LINES)), b"")
    with ThreadPoolExecutor(cores()) as pool, target.open("wb") as out:
        # Executor.map reads all of its input at once, which may not fit into memory.
        while group := list(islice(chunks, 2 * cores())):
            out.writelines(pool.map(bz2.compress, group))


def check_source(parser: argparse.ArgumentParser, folder: Path) -> None:
    """Check that a folder contains the file of each split.

    Args:
      parser: the parser of the command line, which reports the error.
      folder: the folder.

    Raises:
      SystemExit: a file is missing.
    """
    for name in NAMES:
        if _source(folder, name) is None:
            parser.error(f"{folder}: no {name}, and not without .bz2")


def _source(folder: Path, name: str) -> Path | None:
    files = (folder / name, folder / name.removesuffix(".bz2"))
    return next((file for file in files if file.exists()), None)


def main(given: str, folder: str, train: str, test: str) -> None:
    Path(folder).mkdir(parents=True, exist_ok=True)
    seen: set[int] = set()
    for seed, (name, count) in enumerate(zip(NAMES, (int(train), int(test)), strict=True)):
        file = _source(Path(given), name)
        assert file is not None
        write_archive(recombined(file, count, seen, seed), Path(folder) / name)


if __name__ == "__main__":
    main(*sys.argv[1:])
