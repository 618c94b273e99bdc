"""Find the reviews of each slice in a batch, by TFMA's own rules for one review of each kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from tensorflow_model_analysis.proto import config_pb2
from tensorflow_model_analysis.slicer import slicer_lib

SliceKey = tuple[tuple[str, str | int | float], ...]
"""The features of a slice and their values; empty for the slice of all reviews."""


class Column(NamedTuple):
    """A feature of a batch.

    Attributes:
      codes: index into `values` for each review, int64 [batch].
      values: different values, each the values of the feature in one review.
    """

    codes: np.ndarray
    values: list[np.ndarray]


Features = dict[str, Column]


def slicing_features(eval_config: config_pb2.EvalConfig) -> list[str]:
    """Return the names of the features by which a configuration slices."""
    specs = eval_config.slicing_specs
    return sorted({key for spec in specs for key in (*spec.feature_keys, *spec.feature_values)})


def dense_column(values: np.ndarray) -> Column:
    """Return the column of a feature with the same number of values in each review, [batch, …]."""
    rows = values.reshape(len(values), -1)
    if rows.shape[1] == 1:
        unique, codes = np.unique(rows[:, 0], return_inverse=True)
        return Column(codes, [unique[index : index + 1] for index in range(len(unique))])
    return _ragged_column(list(rows))


def arrow_column(values: pa.Array) -> Column:
    """Return the column of a raw feature, lists of any lengths; a missing list is empty."""
    lengths = values.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    flat = values.flatten().to_numpy(zero_copy_only=False)
    if np.all(lengths == 1):
        return dense_column(flat)
    return _ragged_column(np.split(flat, np.cumsum(lengths)[:-1]))


def slices_of(
    size: int,
    transformed: Sequence[Features],
    raw: Features,
    specs: Sequence[slicer_lib.SingleSliceSpec],
) -> dict[SliceKey, np.ndarray]:
    """Return slice -> positions of its reviews in a batch.

    Args:
      size: number of reviews in the batch.
      transformed: the transformed features of each model.
      raw: the raw features, which count where no model has a transformed feature of that name.
      specs: the slices.
    """
    # Reviews with equal features are in the same slices, so TFMA looks at one of them.
    kinds = np.zeros(size, np.int64)
    for features in (*transformed, raw):
        for column in features.values():
            both = kinds * len(column.values) + column.codes
            _, kinds = np.unique(both, return_inverse=True)
    _, first = np.unique(kinds, return_index=True)
    order = np.argsort(kinds, kind="stable")
    ends = np.cumsum(np.bincount(kinds, minlength=len(first)))
    found: dict[SliceKey, list[np.ndarray]] = {}
    for example, rows in zip(first.tolist(), np.split(order, ends[:-1]), strict=True):
        keys = slicer_lib.get_slices_for_features_dicts(
            [_features_of(features, example) for features in transformed],
            _features_of(raw, example),
            list(specs),
        )
        for key in set(keys):
            found.setdefault(key, []).append(rows)
    return {key: np.concatenate(parts) for key, parts in found.items()}


def _ragged_column(rows: Sequence[np.ndarray]) -> Column:
    values: dict[tuple[object, ...], int] = {}
    codes = np.empty(len(rows), np.int64)
    first: list[np.ndarray] = []
    for index, row in enumerate(rows):
        code = values.setdefault(tuple(row.tolist()), len(values))
        if code == len(first):
            first.append(row)
        codes[index] = code
    return Column(codes, first)


def _features_of(features: Features, example: int) -> dict[str, np.ndarray]:
    return {name: column.values[column.codes[example]] for name, column in features.items()}
