"""Copying weights between a model of one process and the same model sharded over servers."""

from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from trainer_module.loop import weights

TABLE = np.arange(10.0).reshape(5, 2)


def model(*values):
    variables = [
        tf.Variable(value, dtype=tf.float32, name=f"v{i}") for i, value in enumerate(values)
    ]
    return SimpleNamespace(variables=variables)


def values(model):
    return [variable.numpy().tolist() for variable in model.variables]


@pytest.mark.parametrize("cuts", [[], [3], [1, 2, 4]], ids=["whole", "in two", "in four"])
def test_a_table_that_is_cut_has_each_row_once(cuts):
    plain = model(TABLE, [7.0, 8.0], 9.0)
    parts = np.split(TABLE, cuts)
    spread = model(*(0 * part for part in parts), [0.0, 0.0], 0.0)
    weights.spread(plain, spread)
    assert values(spread) == [*(part.tolist() for part in parts), [7.0, 8.0], 9.0]
    gathered = model(0 * TABLE, [0.0, 0.0], 0.0)
    weights.gather(spread, gathered)
    assert values(gathered) == values(plain)


@pytest.mark.parametrize(
    "other",
    [(TABLE[:4],), (TABLE[:, :1],), (TABLE[:3], TABLE[:4])],
    ids=["fewer rows", "narrower", "parts that do not fit"],
)
def test_a_model_of_another_shape_is_refused(other):
    with pytest.raises(ValueError, match=r"v0.* of shape \(5, 2\) is not in the model"):
        weights.spread(model(TABLE), model(*other))
