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
from preprocessing.reading.files import REMEDY, SourceFile
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

    The first reviews of each file are compared as sets, without labels: once without the titles,
    which one of the files may lack, and once with them, because a column of one file may contain
    both. Files of different groups are not compared: ReviewExampleGen rejects each review that is
    also in the files of a held-out split.
    """
    # A task may not wait for another task of its pool. The reader of a whole file starts none.
    starts = list(pool.map(partial(_starts, pool=pool), files, layouts))
    for of_files in zip(*starts, strict=True):
        _refuse(files, of_files)


def _refuse(files: Sequence[SourceFile], starts: Sequence[_Start]) -> None:
    seen: dict[tuple[str, tuple[int, bool]], int] = {}  # group and review -> the first file
    for number, (file, start) in enumerate(zip(files, starts, strict=True)):
        holders = Counter(seen.setdefault((file.group, review), number) for review in start)
        for other, _ in holders.most_common(2):
            common, most = start & starts[other], max(len(start), len(starts[other]))
            is_copy = len(common) >= _SAME * most and sum(long for _, long in common) >= _MIN_LONG
            if other != number and is_copy:
                raise InputError(
                    f"{files[other].path} and {file.path} contain the same reviews ({len(common)} "
                    f"of the first {most} are equal): {REMEDY}"
                )


def _starts(file: SourceFile, layout: Layout, pool: ThreadPoolExecutor) -> tuple[_Start, _Start]:
    """Return the first reviews of a file, without and with their titles."""
    texts = _first_texts(file, layout, pool)
    columns = layout.columns
    if columns is None:  # the title of a fastText review ends at the first `: `
        bodies = [text.partition(b": ")[2] or text for text in texts]
    elif columns.title is None:
        bodies = texts
    else:
        # The names of all columns, which a CSV file without a header does not have.
        header = layout.header or tuple(name for name in columns[:3] if name)
        without = replace(layout, columns=columns._replace(title=None), header=header)
        bodies = _first_texts(file, without, pool)
    return _start(bodies), _start(texts)


def _first_texts(file: SourceFile, layout: Layout, pool: ThreadPoolExecutor) -> list[bytes]:
    whole = Piece(file.path, replace(layout, labels="optional"), 0, 0, None, False, file.size)
    texts = (text for batch in read_batches(whole, pool) for text in batch.texts)
    return list(islice(texts, _REVIEWS))


def _start(reviews: Sequence[bytes]) -> _Start:
    words = [b" ".join(review.split()) for review in reviews]
    found = frozenset((hash(review), len(review) >= _MIN_BYTES) for review in words)
    return found if len(found) >= _VARIED * len(words) else frozenset()
