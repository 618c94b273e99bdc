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
          A row for each text, with the index of `data`. The columns of a model with two classes are
          `probability` (float32), that of the second class, and `label` (int64), the index of the
          predicted class. A model with more classes has the columns `probability` (float32), that
          of the predicted class; `label` (int64), its index; `class`, its name; and
          `probabilities`, a list of those of all classes. The asset `labels.json` of the SavedModel
          contains the names of the classes in their order.

        Raises:
          ValueError: there is no column `text`, or a row has no text that UTF-8 can represent. The
            message names the row. `data.dropna(subset=["text"])` drops the rows without a text.
          tensorflow.errors.OpError: the model failed.
        """
        series = _texts(data)
        texts = list(_encoded(series))
        signature = self._model.signatures["predict_text"]
        parts: dict[str, list[np.ndarray]] = {name: [] for name in signature.structured_outputs}
        # There is at least one call, because an empty result must have the types of the outputs.
        for start in range(0, max(len(texts), 1), _BATCH):
            found = signature(tf.constant(texts[start : start + _BATCH], tf.string))
            for name, values in parts.items():
                values.append(found[name].numpy())
        outputs = {name: np.concatenate(values) for name, values in parts.items()}
        return pd.DataFrame(_columns(outputs), index=series.index)


def _columns(outputs: Mapping[str, np.ndarray]) -> dict[str, Any]:
    label = outputs["label"].reshape(-1)
    if "probability" in outputs:
        return {"probability": outputs["probability"].reshape(-1), "label": label}
    probabilities = outputs["probabilities"]
    return {
        "probability": probabilities[np.arange(len(label)), label],
        "label": label,
        "class": [name.decode() for name in outputs["class"].tolist()],
        "probabilities": probabilities.tolist(),
    }


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
    series = data.iloc[:, found[0]]
    # MLflow passes {"text": [TEXT, …]} as one row with the whole list.
    if len(series) == 1 and isinstance(series.iloc[0], list):
        return pd.Series(series.iloc[0], dtype=object)
    return series


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
