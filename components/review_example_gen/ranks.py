"""The ranks of the reviews of a split: `data.max_examples` keeps those with the lowest ranks.

The first bits of a rank are its bucket. The counts of the buckets show the bucket that contains the
last rank that is kept, so only the ranks in this bucket are computed.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

PLACE = np.dtype([("high", "<u4"), ("source", "<u4"), ("position", "<i8")])
"""A review: the upper 32 bits of its text key, the index of its source in the unit, and its
position in the piece."""

_LOW_32_BITS = 0xFFFFFFFF
_BUCKETS = 1 << 12
"""The counts have 32 kB. Of 1 billion reviews a bucket has 240,000."""
_BITS_IN_BUCKET = np.uint32(20)


def rank(key: int, path: str, position: int) -> int:
    """Return the rank of a review.

    The rank orders reviews by their texts, so that a sample does not depend on the division of the
    files into pieces. It orders equal texts by their places, so that a sample can contain some of
    them and has an exact size.

    Args:
      key: its text key; only the upper 32 bits matter.
      path: its file, of which only the name matters.
      position: its position in the file.
    """
    file_name = os.path.basename(path)
    place = hashlib.blake2b(f"{file_name}\n{position}".encode(), digest_size=4).digest()
    return (key & ~_LOW_32_BITS) | int.from_bytes(place, "little")


class Edge(NamedTuple):
    """The bucket with the last review of a split that is kept, and how many of it are kept."""

    bucket: int
    kept: int


def places_of(keys: np.ndarray, source: int, positions: np.ndarray) -> np.ndarray:
    """Return an array of PLACE for reviews of one source."""
    places = np.empty(len(keys), PLACE)
    places["high"] = keys >> np.uint64(32)
    places["source"] = source
    places["position"] = positions
    return places


def count_buckets(places: np.ndarray) -> np.ndarray:
    """Return the number of reviews in each bucket, int64 of shape [_BUCKETS]."""
    return np.bincount(_buckets(places), minlength=_BUCKETS)


def sum_counts(counts: Iterable[np.ndarray]) -> np.ndarray:
    """Return the sum of any number of `count_buckets`."""
    total = np.zeros(_BUCKETS, np.int64)
    for each in counts:
        total += each
    return total


def find_edge(counts: np.ndarray, limit: int) -> Edge | None:
    """Return the edge of a split with these counts in its buckets; None if all reviews are kept."""
    up_to = np.cumsum(counts)
    if up_to[-1] <= limit:
        return None
    bucket = int(np.searchsorted(up_to, limit))
    return Edge(bucket, limit - int(up_to[bucket] - counts[bucket]))


def at_edge(
    places: np.ndarray,
    edge: Edge,
    pieces: Sequence[tuple[str, int]],
    before: Mapping[tuple[str, int], int],
) -> np.ndarray:
    """Return the `rank` of each review in the bucket of the edge, uint64.

    Args:
      places: an array of PLACE.
      edge: the edge of their split.
      pieces: (path, number) of the piece of each source.
      before: see `cap.Cap`.
    """
    here = places[_buckets(places) == edge.bucket]
    ranks = [
        rank(high << 32, pieces[source][0], before[pieces[source]] + position)
        for high, source, position in here.tolist()
    ]
    return np.array(ranks, np.uint64)


def last_kept(
    ranks: Iterable[tuple[str, np.ndarray]], edges: Mapping[str, Edge | None]
) -> dict[str, int]:
    """Return `cap.Cap.last_rank`.

    Args:
      ranks: a split, and the ranks `at_edge` of some of its reviews.
      edges: capped split -> its edge.
    """
    found = list(ranks)
    last = {}
    for split, edge in edges.items():
        if edge is not None:
            of_split = np.concatenate([some for name, some in found if name == split])
            last[split] = int(np.partition(of_split, edge.kept - 1)[edge.kept - 1])
    return last


def _buckets(places: np.ndarray) -> np.ndarray:
    return places["high"] >> _BITS_IN_BUCKET
