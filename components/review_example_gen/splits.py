"""The split of a review, which depends on a hash of its text and not on its position.

Therefore the same input results in the same splits with every Beam runner and number of workers,
and a duplicate text is never in two splits.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from preprocessing.reading.files import HELD_OUT
from preprocessing.reading.records import Batch

SPLITS = ("train", "eval", "test")
ALL_FILES = "all"
"""The group of files that are read when no split is named."""

HeldOut = Mapping[str, np.ndarray]
"""Named held-out group -> the sorted, unique `text_keys` of reviews in its files (uint64)."""

_BUCKETS = {"eval": 0, "test": 1}
"""Split -> its tenth of the texts of a group that contains all splits."""


def text_keys(texts: Sequence[bytes]) -> np.ndarray:
    """Return the `text_key` of each text, uint64 of shape [len(texts)]."""
    digest = hashlib.blake2b
    return np.frombuffer(b"".join([digest(t, digest_size=8).digest() for t in texts]), "<u8")


class AssignedBatch(NamedTuple):
    """A batch, and the key, the split and the duplicate of each of its reviews.

    Attributes:
      batch: the reviews.
      keys: their `text_keys`, uint64.
      split: `train`, `eval` or `test`.
      duplicate_in: the held-out split of the highest priority whose files have the same text, or an
        empty string.
    """

    batch: Batch
    keys: np.ndarray
    split: np.ndarray
    duplicate_in: np.ndarray


def assign_batch(
    batch: Batch, group: str, named: frozenset[str], held_out: HeldOut
) -> AssignedBatch:
    """Assign a split to each review of a batch from the files of `group`.

    `named` are the groups that have files of their own, `held_out` the keys of held-out ones.
    """
    keys = text_keys(batch.texts)
    duplicate_in = np.full(len(keys), "", "U5")
    for name, priority in HELD_OUT.items():  # the highest priority last
        found = held_out.get(name, keys[:0])
        if priority > HELD_OUT.get(group, 0) and len(found):
            place = np.minimum(np.searchsorted(found, keys), len(found) - 1)
            duplicate_in[found[place] == keys] = name
    return AssignedBatch(batch, keys, assign_splits(keys, group, named), duplicate_in)


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
    for name, tenth in _BUCKETS.items():
        if name not in named:
            split[keys % np.uint64(10) == tenth] = name
    return split


def held_out_keys(pairs: Iterable[tuple[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Return the `HeldOut` of held-out groups and the `text_keys` of some of their reviews."""
    groups: defaultdict[str, list[np.ndarray]] = defaultdict(list)
    for group, keys in pairs:
        groups[group].append(keys)
    return {group: np.unique(np.concatenate(arrays)) for group, arrays in groups.items()}
