"""The loader of a pushed model in MLflow, where a copy of this file accompanies the SavedModel.

Therefore `mlflow.pyfunc.load_model("models:/amazon_reviews@champion")` requires the packages that
the model lists, but not this project.
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
"""Number of reviews in one call of the model. A sequence model has 400 KB of activations for each
review."""


class _Model:
    """A SavedModel with the interface of `mlflow.pyfunc.PythonModel`.

    Args:
      folder: the folder of the SavedModel.
    """

    def __init__(self, folder: str):
        self._model = tf.saved_model.load(folder)

    def predict(self, data: Any, params: Any = None) -> pd.DataFrame:
        """Return the predictions for texts.

        Args:
          data: a DataFrame with the column `text`, whose other columns are ignored; or the texts
            alone, as a Series, a list, an array or one string; or an argument of `DataFrame` with
            the column `text`, such as `{"text": ["great phone"]}`.
          params: not used.

        Returns:
          A row for each text, with the index of `data`. The columns are `probability` (float32),
          the probability that the text is positive, and `label` (int64), 0 negative or 1 positive.

        Raises:
          ValueError: there is no column `text`, or a row has no text that UTF-8 can represent. The
            message names the row. `data.dropna(subset=["text"])` drops the rows without a text.
          tensorflow.errors.OpError: the model failed.
        """
        series = _texts(data)
        texts = list(_encoded(series))
        signature = self._model.signatures["predict_text"]
        parts: list[list[np.ndarray]] = []
        # There is at least one call, because an empty result must have the types of the outputs.
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
            # The rows of an array with one column are lists of one value.
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
