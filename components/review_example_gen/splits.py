"""Which split a review belongs to: decided by a hash of its text, never by where it was read.

The same input therefore gives the same split under every Beam runner and worker count, and a
duplicated text never sits in two splits.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

SPLITS = ("train", "eval", "test")
ALL_FILES = "all"
"""The group of files that are read when no split is named."""

_EVAL_BUCKET, _TEST_BUCKET, _BUCKETS = 0, 1, 10
HELD_OUT = {"eval": 1, "test": 2}
"""The splits that a text is kept for when it also stands in files of a lower number."""
_LOW_32_BITS = 0xFFFFFFFF


def text_key(text: bytes) -> int:
    """64 bits of BLAKE2b over the text: what decides its split."""
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")


def rank_key(key: int, file_name: str, position: int) -> int:
    """Orders reviews for `max_examples`: by text first, so a sample does not depend on how the
    files are cut, then by place, so that of equal texts an exact number can be taken."""
    place = hashlib.blake2b(f"{file_name}\n{position}".encode(), digest_size=4).digest()
    return (key & ~_LOW_32_BITS) | int.from_bytes(place, "little")


def assign_split(key: int, group: str, named: frozenset[str]) -> str:
    """The split of a text read from the files of `group`.

    Args:
      key: `text_key` of the text.
      group: `train`, `eval`, `test` or `all`.
      named: the groups that have files of their own. What is not named is taken from `train`
        (or `all`): a tenth for eval, a tenth for test.
    """
    if group in HELD_OUT:
        return group
    bucket = key % _BUCKETS
    if bucket == _EVAL_BUCKET and "eval" not in named:
        return "eval"
    if bucket == _TEST_BUCKET and "test" not in named:
        return "test"
    return "train"


@dataclass(frozen=True)
class Selection:
    """What first passes over the keys found out: which texts and how many may be kept.

    held_out: for each named held-out group, the sorted `text_key`s of its reviews (uint64).
    last_rank: for each capped split, the highest `rank_key` that is still taken.
    """

    held_out: Mapping[str, np.ndarray] = field(default_factory=dict)
    last_rank: Mapping[str, int] = field(default_factory=dict)

    def stands_elsewhere(self, key: int, group: str) -> str | None:
        """The held-out split that this text belongs to although it was read from `group`."""
        own = HELD_OUT.get(group, 0)
        for split, keys in self.held_out.items():
            if HELD_OUT[split] > own and _contains(keys, key):
                return split
        return None

    def is_over_the_cap(self, split: str, rank: int) -> bool:
        return split in self.last_rank and rank > self.last_rank[split]


def held_out_keys(pieces: Mapping[str, Iterable[np.ndarray]]) -> dict[str, np.ndarray]:
    """Group -> pieces of its text keys, put together for `Selection.held_out`."""
    return {group: np.unique(_join(arrays)) for group, arrays in pieces.items()}


def last_ranks(
    pieces: Mapping[str, Iterable[np.ndarray]], max_examples: Mapping[str, int]
) -> dict[str, int]:
    """Split -> pieces of its reviews' rank keys, turned into `Selection.last_rank`."""
    last = {}
    for split, limit in max_examples.items():
        ranks = _join(pieces.get(split, ()))
        if len(ranks) > limit:
            last[split] = int(np.partition(ranks, limit - 1)[limit - 1])
    return last


def _join(pieces: Iterable[np.ndarray]) -> np.ndarray:
    arrays = list(pieces)
    return np.concatenate(arrays) if arrays else np.empty(0, np.uint64)


def _contains(keys: np.ndarray, key: int) -> bool:
    index = int(np.searchsorted(keys, np.uint64(key)))
    return index < len(keys) and int(keys[index]) == key
