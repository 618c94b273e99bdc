"""Refuse two files of an input with the same reviews, whatever their formats and their order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import islice

from core.errors import InputError
from preprocessing.reading.columns import Layout
from preprocessing.reading.files import SourceFile
from preprocessing.reading.pieces import Piece
from preprocessing.reading.read import read_batches

_REVIEWS = 100
"""Reviews at the start of each file that are compared."""
_SAME = 0.9
"""Fraction of equal reviews in two copies. A few may differ in entities or damaged characters."""
_MIN_BYTES, _MIN_LONG = 16, 2
"""The length and number of the texts that two copies share. Shorter ones may be a coincidence."""

_VARIED = 0.5
"""Fraction of different reviews below which a file is not compared, because it repeats phrases."""

_Start = frozenset[tuple[int, bool]]
"""Of each of the first reviews: the hash, and whether the review is long enough."""


def refuse_copies(
    files: Sequence[SourceFile], layouts: Sequence[Layout], pool: ThreadPoolExecutor
) -> None:
    """Raise InputError if two files of a group have the same reviews.

    The first reviews of each file are compared as sets, without labels. Files of different groups
    are not compared: ReviewExampleGen rejects each review that is also in the files of a held-out
    split.
    """
    # A task may not wait for another task of its pool. The reader of a whole file starts none.
    starts = list(pool.map(partial(_start, pool=pool), files, layouts))
    seen: dict[tuple[str, tuple[int, bool]], int] = {}  # group and review -> the first file
    for number, (file, start) in enumerate(zip(files, starts, strict=True)):
        holders = Counter(seen.setdefault((file.group, review), number) for review in start)
        for other, _ in holders.most_common(2):
            common, most = start & starts[other], max(len(start), len(starts[other]))
            is_copy = len(common) >= _SAME * most and sum(long for _, long in common) >= _MIN_LONG
            if other != number and is_copy:
                raise InputError(
                    f"{files[other].path} and {file.path} contain the same reviews ({len(common)} "
                    f"of the first {most} are equal): remove one of them, or write a glob in "
                    "data.splits that matches only one"
                )


def _start(file: SourceFile, layout: Layout, pool: ThreadPoolExecutor) -> _Start:
    whole = Piece(file.path, replace(layout, labels="optional"), 0, 0, None, False, file.size)
    texts = (text for batch in read_batches(whole, pool) for text in batch.texts)
    words = [b" ".join(text.split()) for text in islice(texts, _REVIEWS)]
    found = frozenset((hash(review), len(review) >= _MIN_BYTES) for review in words)
    return found if len(found) >= _VARIED * len(words) else frozenset()
