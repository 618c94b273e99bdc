"""The split of a review, which depends on a hash of its text and not on its position.

Therefore the same input results in the same splits with every Beam runner and number of workers,
and a duplicate text is never in two splits.
"""

from __future__ import annotations

import hashlib
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import numpy as np

from preprocessing.reading.batch import Batch
from preprocessing.reading.cut import Piece
from preprocessing.reading.find import HELD_OUT

_T = TypeVar("_T")

SPLITS = ("train", "eval", "test")
ALL_FILES = "all"
"""The group of files that are read when no split is named."""

_EVAL_BUCKET, _TEST_BUCKET, _BUCKETS = 0, 1, 10
_LOW_32_BITS = 0xFFFFFFFF
_HIGH_32_BITS = np.uint64(0xFFFFFFFF << 32)


def text_key(text: bytes) -> int:
    """Return 64 bits of the BLAKE2b hash of a text, which determine its split."""
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")


def text_keys(texts: Sequence[bytes]) -> np.ndarray:
    """Return the `text_key` of each text, uint64 of shape [len(texts)]."""
    digest = hashlib.blake2b
    return np.frombuffer(b"".join([digest(t, digest_size=8).digest() for t in texts]), "<u8")


def rank_key(key: int, file_name: str, position: int) -> int:
    """Return the sort key of a review for `max_examples`.

    The key orders reviews by their texts, so that a sample does not depend on the division of the
    files into pieces. It orders equal texts by their places, so that a sample can contain some of
    them and has an exact size.
    """
    place = hashlib.blake2b(f"{file_name}\n{position}".encode(), digest_size=4).digest()
    return (key & ~_LOW_32_BITS) | int.from_bytes(place, "little")


class Routed(NamedTuple):
    """A batch, and the key, the split and the duplicate of each of its reviews.

    Attributes:
      batch: the reviews.
      keys: their `text_keys`, uint64.
      split: `train`, `eval` or `test`.
      duplicate_in: the held-out split whose files have the same text, or an empty string.
    """

    batch: Batch
    keys: np.ndarray
    split: np.ndarray
    duplicate_in: np.ndarray


def route(
    batch: Batch, group: str, named: frozenset[str], held_out: Mapping[str, np.ndarray]
) -> Routed:
    """Assign a split to each review of a batch.

    Args:
      batch: reviews from the files of `group`.
      group: `train`, `eval`, `test` or `all`.
      named: the groups that have files of their own.
      held_out: for each named held-out group, the sorted `text_keys` of its reviews (uint64).
    """
    keys = text_keys(batch.texts)
    own = HELD_OUT.get(group, 0)
    duplicate_in = np.full(len(keys), "", "U5")
    for name, of_split in held_out.items():
        if HELD_OUT[name] > own and len(of_split):
            at = np.minimum(np.searchsorted(of_split, keys), len(of_split) - 1)
            duplicate_in[(of_split[at] == keys) & (duplicate_in == "")] = name
    return Routed(batch, keys, assign_splits(keys, group, named), duplicate_in)


def assign_splits(keys: np.ndarray, group: str, named: frozenset[str]) -> np.ndarray:
    """Return the split of each text that is read from the files of `group`.

    Args:
      keys: `text_keys` of the texts.
      group: `train`, `eval`, `test` or `all`.
      named: the groups that have files of their own. A split that is not named is taken from
        `train` (or `all`): a tenth for eval, a tenth for test.
    """
    if group in HELD_OUT:
        return np.full(len(keys), group)
    split = np.full(len(keys), "train")
    bucket = keys % np.uint64(_BUCKETS)
    for name, number in (("eval", _EVAL_BUCKET), ("test", _TEST_BUCKET)):
        if name not in named:
            split[bucket == number] = name
    return split


class Places(NamedTuple):
    """The keys of the reviews of a split in a piece, and their positions in the piece.

    `path` is the file of the piece, and `number` is the number of the piece in this file.
    """

    path: str
    number: int
    keys: np.ndarray
    positions: np.ndarray


@dataclass(frozen=True)
class Cap:
    """The limits of `max_examples`, from a first pass over all files.

    Attributes:
      last_rank: capped split -> the highest `rank_key` of the reviews that are kept.
      before: (path, number) of a piece of a file -> the number of lines before the piece.
    """

    last_rank: Mapping[str, int] = field(default_factory=dict)
    before: Mapping[tuple[str, int], int] = field(default_factory=dict)

    def is_over(
        self, split: np.ndarray, keys: np.ndarray, positions: Sequence[int], piece: Piece
    ) -> np.ndarray:
        """Return for each review whether it is over the limit of its split."""
        over = np.zeros(len(keys), bool)
        for name, last in self.last_rank.items():
            here = split == name
            high = keys & _HIGH_32_BITS
            limit = np.uint64(last) & _HIGH_32_BITS
            over |= here & (high > limit)
            # The place matters only for texts with the same upper bits.
            for index in np.flatnonzero(here & (high == limit)).tolist():
                position = self.before[piece.path, piece.number] + positions[index]
                over[index] = _rank(piece.path, int(keys[index]), position) > last
        return over


def lines_before(lines: Iterable[tuple[str, int, int]]) -> dict[tuple[str, int], int]:
    """Return (path, number) of each piece -> the number of lines before it in its file.

    Args:
      lines: (path, number, lines) of every piece.
    """
    before, path, total = {}, None, 0
    for piece_path, number, count in sorted(lines):
        if piece_path != path:
            path, total = piece_path, 0
        before[piece_path, number] = total
        total += count
    return before


def held_out_keys(pieces: Iterable[tuple[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Return the argument `held_out` of `route`.

    Args:
      pieces: pairs of a held-out group and the `text_keys` of some of its reviews.
    """
    return {group: np.unique(joined(arrays)) for group, arrays in _grouped(pieces).items()}


def find_cap(
    places: Iterable[tuple[str, Places]],
    lines: Iterable[tuple[str, int, int]],
    max_examples: Mapping[str, int],
) -> Cap:
    """Return the limits of the splits in `max_examples`.

    Args:
      places: pairs of a split and some of its reviews.
      lines: (path, number, lines) of each piece.
      max_examples: split -> the largest number of its reviews.
    """
    before = lines_before(lines)
    by_split = _grouped(places)
    last = {}
    for split, limit in max_examples.items():
        found = by_split[split]
        high = joined(piece.keys & _HIGH_32_BITS for piece in found)
        if len(high) <= limit:
            continue
        edge = np.partition(high, limit - 1)[limit - 1]
        left = limit - int(np.count_nonzero(high < edge))
        ranks = [
            _rank(piece.path, int(piece.keys[i]), before[piece.path, piece.number] + at)
            for piece in found
            for i in np.flatnonzero((piece.keys & _HIGH_32_BITS) == edge)
            for at in [int(piece.positions[i])]
        ]
        last[split] = sorted(ranks)[left - 1]
    return Cap(last, before)


def _grouped(pairs: Iterable[tuple[str, _T]]) -> defaultdict[str, list[_T]]:
    groups: defaultdict[str, list[_T]] = defaultdict(list)
    for name, value in pairs:
        groups[name].append(value)
    return groups


def joined(arrays: Iterable[np.ndarray], dtype: type[np.generic] = np.uint64) -> np.ndarray:
    """Return the concatenation of arrays; without any, an empty array of this dtype."""
    found = list(arrays)
    return np.concatenate(found) if found else np.empty(0, dtype)


def _rank(path: str, key: int, position: int) -> int:
    return rank_key(key, os.path.basename(path), position)
