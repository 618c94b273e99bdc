"""The conversion of a SavedModel to MLflow's format, with a signature and an example."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from preprocessing.labels import model_labels
from serving import mlflow_model

_REVIEWS = ["Great phone, I use it every day.", "It broke after a week."]
_TEXTS = ["Where is my order?", "I cannot log in any more."]
"""Examples for a model whose texts are not reviews."""


def save(saved_model: str, folder: str) -> None:
    """Write a SavedModel in MLflow's format.

    Args:
      saved_model: the local folder of the SavedModel.
      folder: the local folder that is created.

    Raises:
      mlflow.exceptions.MlflowException: the folder exists already.
      InputError: the file of the classes is damaged.
      OSError: a file cannot be read or written.
    """
    import mlflow
    import pandas as pd
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, DataType, Schema
    from mlflow.types.schema import Array

    labels = model_labels(saved_model)
    inputs: Any = [ColSpec("string", "text")]
    outputs: Any = [ColSpec("float", "probability"), ColSpec("long", "label")]
    if labels.scores_shape:
        probabilities = ColSpec(Array(DataType.double), labels.scores_name)
        outputs += [ColSpec("string", "class"), probabilities]
    examples = _REVIEWS if labels.noun == "review" else _TEXTS
    mlflow.pyfunc.save_model(
        folder,
        loader_module="mlflow_model",
        code_paths=[str(mlflow_model.__file__)],
        data_path=saved_model,
        signature=ModelSignature(Schema(inputs), Schema(outputs)),
        input_example=pd.DataFrame({"text": examples}),
        pip_requirements=[f"tensorflow=={tf.__version__}", "pandas"],
    )
