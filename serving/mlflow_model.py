"""The loader of a pushed model in MLflow: a copy of this file accompanies the SavedModel there.

So `mlflow.pyfunc.load_model("models:/amazon_reviews@champion")` requires only the packages that the
model names, and not this project.
"""

from __future__ import annotations

from typing import Any

import pandas as pd
import tensorflow as tf


class _Model:
    def __init__(self, folder: str):
        self._model = tf.saved_model.load(folder)

    def predict(self, data: pd.DataFrame, params: Any = None) -> pd.DataFrame:
        """Return `probability` of being positive, float32, and `label`, int64, of each text."""
        outputs = self._model.signatures["predict_text"](tf.constant(list(data["text"])))
        return pd.DataFrame({name: value.numpy().reshape(-1) for name, value in outputs.items()})


def _load_pyfunc(folder: str) -> _Model:
    return _Model(folder)
