"""The loader of a pushed model in MLflow: a copy of this file accompanies the SavedModel there.

So `mlflow.pyfunc.load_model("models:/amazon_reviews@champion")` requires only the packages that the
model names, and not this project.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
import tensorflow as tf

_COLUMN = "text"
_OUTPUTS = ("probability", "label")
_BATCH = 512
"""Reviews in one call of the model. A sequence model has 400 KB of activations for each."""


class _Model:
    def __init__(self, folder: str):
        self._model = tf.saved_model.load(folder)

    def predict(self, data: Any, params: Any = None) -> pd.DataFrame:
        """Return the predictions for texts.

        Args:
          data: a DataFrame with the column `text`, whose other columns are ignored; or the texts
            alone: a Series, a list, an array or one string; or whatever `DataFrame` accepts with
            the column `text`, such as `{"text": ["great phone"]}`.
          params: not used.

        Returns:
          A row for each text, with the index of `data`: `probability` of being positive, float32,
          and `label`, int64.

        Raises:
          ValueError: there is no column `text`, or a row has no text in UTF-8. The message names
            the row. `data.dropna(subset=["text"])` drops the rows without a text.
        """
        series = _texts(data)
        texts = list(_encoded(series))
        signature = self._model.signatures["predict_text"]
        parts: list[list[np.ndarray]] = []
        # At least one call, whose empty result has the types of the outputs.
        for start in range(0, max(len(texts), 1), _BATCH):
            found = signature(tf.constant(texts[start : start + _BATCH], tf.string))
            parts.append([found[name].numpy().reshape(-1) for name in _OUTPUTS])
        columns = map(np.concatenate, zip(*parts, strict=True))
        return pd.DataFrame(dict(zip(_OUTPUTS, columns, strict=True)), index=series.index)


def _load_pyfunc(folder: str) -> _Model:
    return _Model(folder)


def _texts(data: Any) -> pd.Series:
    """Return the texts of any input of `predict`, with their index.

    Raises:
      ValueError: there is no column `text`, or more than one.
    """
    if isinstance(data, pd.Series):
        return data
    if isinstance(data, (str, bytes)):
        return pd.Series([data], dtype=object)
    if isinstance(data, Mapping):
        one = all(pd.api.types.is_scalar(value) for value in data.values())
        data = pd.DataFrame(data, index=[0] if one else None)
    if not isinstance(data, pd.DataFrame):
        values = np.atleast_1d(data).tolist() if isinstance(data, np.ndarray) else list(data)
        if not any(isinstance(value, Mapping) for value in values):
            # An array of one column has a list for each row.
            values = [v[0] if isinstance(v, list) and len(v) == 1 else v for v in values]
            return pd.Series(values, dtype=object)
        data = pd.DataFrame(values)
    found = [position for position, name in enumerate(data.columns) if name == _COLUMN]
    if len(found) != 1:
        number = f"{len(found)} columns" if found else "no column"
        names = ", ".join(map(str, data.columns)) or "none"
        raise ValueError(f"{number} {_COLUMN!r} in the input; the columns are: {names}")
    return data.iloc[:, found[0]]


def _encoded(series: pd.Series) -> Iterator[bytes]:
    """Yield the texts in UTF-8.

    Raises:
      ValueError: a row has no text, or a text that UTF-8 cannot represent.
    """
    for row, (label, value) in enumerate(zip(series.index, series, strict=True)):
        if isinstance(value, str):
            try:
                yield value.encode()
                continue
            except UnicodeEncodeError:
                problem = "contains a surrogate, which has no UTF-8"
        elif pd.api.types.is_scalar(value) and pd.isna(value):
            problem = f"is missing ({value}); drop such rows, or set a text"
        else:
            problem = f"is of the type {type(value).__name__}, and must be a string"
        raise ValueError(f"row {row} (index {label!r}): {_COLUMN} {problem}")
