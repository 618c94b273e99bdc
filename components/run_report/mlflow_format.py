"""A pushed model in MLflow's format, with a signature and an example."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from serving import mlflow_model

_EXAMPLES = ["Great phone, I use it every day.", "It broke after a week."]


def save(saved_model: str, folder: str) -> None:
    """Write a local SavedModel to the new folder `folder` in MLflow's format."""
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
