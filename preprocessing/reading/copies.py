"""Find files of an input that contain the same reviews, whatever their formats and their order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import NamedTuple

from preprocessing.reading.columns import Layout
from preprocessing.reading.files import FILES_AT_ONCE, SourceFile
from preprocessing.reading.pieces import Piece
from preprocessing.reading.read import read_batches

_REVIEWS, _MIN_BYTES = 100, 16
"""Number of reviews at the start of each file that are compared, and the minimum bytes of a review
that counts."""
_SAME, _MIN_SAME = 0.9, 2
"""Minimum fraction and number of equal reviews in two copies. Copies may differ in a few damaged
characters."""
_VARIED = 0.5
"""Minimum fraction of different reviews of a file that is compared. Other files repeat phrases."""


class Copy(NamedTuple):
    """A file that contains the same reviews as another one.

    Attributes:
      file: the shorter one of both.
      other: the longer one.
      message: a message with the remedy.
    """

    file: SourceFile
    other: SourceFile
    message: str


def find_copies(files: Sequence[SourceFile], layouts: Sequence[Layout]) -> Iterator[Copy]:
    """Yield each file that starts with the same reviews as another one of its group.

    The order of the reviews does not matter.

    Files of different groups are not compared: ReviewExampleGen rejects each review that is also in
    the files of a held-out split.

    Args:
      files: the files.
      layouts: the layout of each of them.

    Raises:
      InputError: a file cannot be read.
    """
    # A task must not wait for another task of its pool. The reader of a whole file starts no tasks.
    with ThreadPoolExecutor(FILES_AT_ONCE) as pool:
        starts = list(pool.map(partial(_start, pool=pool), files, layouts))
    seen: dict[tuple[str, int], int] = {}  # group and review -> the first file
    for number, (file, start) in enumerate(zip(files, starts, strict=True)):
        holders = Counter(seen.setdefault((file.group, review), number) for review in start)
        for other, _ in holders.most_common(2):
            common, most = len(start & starts[other]), max(len(start), len(starts[other]))
            if other != number and common >= max(_MIN_SAME, _SAME * most):
                remedy = "remove one of them, or write a glob in data.splits that matches only one"
                if files[other].span != file.span:
                    remedy = (
                        "export each span with its own texts; if each span has all texts so far, "
                        "set data.window: 2, which tests the texts that are new in the newest one"
                    )
                message = (
                    f"{files[other].path} and {file.path} contain the same texts ({common} "
                    f"of the first {most} are equal): {remedy}"
                )
                is_shorter = files[other].size < file.size
                pair = (files[other], file) if is_shorter else (file, files[other])
                yield Copy(*pair, message)
                break


def _start(file: SourceFile, layout: Layout, pool: ThreadPoolExecutor) -> frozenset[int]:
    """Return the hashes of the first reviews of a file."""
    whole = Piece(file.path, replace(layout, reads_labels=False), unpacked=file.size)
    texts = (text for batch in read_batches(whole, pool) for text in batch.texts)
    words = (b" ".join(text.split()) for text in islice(texts, _REVIEWS))
    found = [hash(review) for review in words if len(review) >= _MIN_BYTES]
    different = frozenset(found)
    return different if len(different) >= _VARIED * len(found) else frozenset()
