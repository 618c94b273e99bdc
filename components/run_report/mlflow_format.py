"""The conversion of a SavedModel to MLflow's format, with a signature and an example."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from serving import mlflow_model

_EXAMPLES = ["Great phone, I use it every day.", "It broke after a week."]


def save(saved_model: str, folder: str) -> None:
    """Write a SavedModel in MLflow's format.

    Args:
      saved_model: the local folder of the SavedModel.
      folder: the local folder that is created.

    Raises:
      mlflow.exceptions.MlflowException: the folder exists already.
      OSError: a file cannot be read or written.
    """
    import mlflow
    import pandas as pd
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, Schema

    inputs: Any = [ColSpec("string", "text")]
    outputs: Any = [ColSpec("float", "probability"), ColSpec("long", "label")]
    mlflow.pyfunc.save_model(
        folder,
        loader_module="mlflow_model",
        code_paths=[str(mlflow_model.__file__)],
        data_path=saved_model,
        signature=ModelSignature(Schema(inputs), Schema(outputs)),
        input_example=pd.DataFrame({"text": _EXAMPLES}),
        pip_requirements=[f"tensorflow=={tf.__version__}", "pandas"],
    )
