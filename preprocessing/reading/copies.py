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
from preprocessing.reading.cut import Piece
from preprocessing.reading.find import REMEDY, SourceFile
from preprocessing.reading.read import read_batches

_REVIEWS = 100
"""Reviews at the start of each file that are compared."""
_SAME = 0.9
"""Fraction of equal reviews in two copies. A few may differ in entities or damaged characters."""
_MIN_BYTES, _MIN_LONG = 16, 2
"""The length and number of the texts that two copies share. Shorter ones may be a coincidence."""

_Review = tuple[int, bool]
"""The hash of a body, and whether the body is long enough."""


def refuse_copies(
    files: Sequence[SourceFile], layouts: Sequence[Layout], pool: ThreadPoolExecutor
) -> None:
    """Raise InputError if two files of a group have the same reviews.

    The sets of the first bodies of each file are compared, without titles and labels, which one of
    the files may lack. Files of different groups are not compared: ReviewExampleGen rejects each
    review that is also in the files of a held-out split.
    """
    # A task may not wait for another task of its pool. The reader of a whole file starts none.
    starts = list(pool.map(partial(_first_reviews, pool=pool), files, layouts))
    seen: dict[tuple[str, _Review], int] = {}  # group and review -> the first file that has it
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


def _first_reviews(
    file: SourceFile, layout: Layout, pool: ThreadPoolExecutor
) -> frozenset[_Review]:
    whole = Piece(file.path, replace(layout, labels="optional"), 0, 0, None, False, file.size)
    bodies = (
        b" ".join(body.split()) for batch in read_batches(whole, pool) for body in batch.bodies
    )
    return frozenset((hash(body), len(body) >= _MIN_BYTES) for body in islice(bodies, _REVIEWS))
