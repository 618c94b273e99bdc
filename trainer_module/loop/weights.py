"""Copy weights between a model of this process and the same model under a strategy.

The values pass through this process and not through files, because parameter servers on other
machines have no access to its temporary folders.
"""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf
import tf_keras


def spread(plain: tf_keras.Model, model: tf_keras.Model) -> None:
    """Copy the weights of `plain` to `model`.

    Args:
      plain: the model outside any strategy.
      model: the same architecture, whose variables may be mirrored, or sharded over servers.

    Raises:
      ValueError: the architectures differ.
    """
    for whole, parts in _tables(plain, model):
        value, row = whole.read_value(), 0
        for part in parts:
            # Only shards select rows; a scalar has none.
            rows = part.shape[0] if len(parts) > 1 else None
            part.assign(value if rows is None else value[row : row + rows])
            row += rows or 0


def gather(model: tf_keras.Model, plain: tf_keras.Model) -> None:
    """Copy the weights of `model` to `plain`; for the arguments and errors see `spread`.

    Reading a variable can be a collective operation, so every synchronous process calls this.
    """
    for whole, parts in _tables(plain, model):
        values = [part.read_value() for part in parts]
        whole.assign(values[0] if len(values) == 1 else tf.concat(values, axis=0))


def _tables(
    plain: tf_keras.Model, model: tf_keras.Model
) -> list[tuple[tf.Variable, list[tf.Variable]]]:
    """Return each variable of `plain` with its variables in `model`: one, or consecutive shards."""
    rest = list(model.variables)
    tables = []
    for whole in plain.variables:
        count = 1
        while count < len(rest) and _rows(rest[:count]) < _rows([whole]):
            count += 1
        parts, rest = rest[:count], rest[count:]
        if _rows(parts) != _rows([whole]) or parts[0].shape[1:] != whole.shape[1:]:
            raise ValueError(
                f"{whole.name} of shape {tuple(whole.shape)} is not in the model that is trained"
            )
        tables.append((whole, parts))
    return tables


def _rows(parts: Sequence[tf.Variable]) -> int:
    return sum(part.shape[0] if part.shape.rank else 1 for part in parts)
