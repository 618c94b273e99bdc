"""The Trainer's step of a compiled pipeline, with real artifacts."""

import json
import os
import shutil
from unittest import mock

from tests.trainer_module import conftest


class Step:
    """The step, with a copy of the fixture `prepared` as its input in an empty folder."""

    def __init__(self, settings, prepared, folder):
        from tfx.types import standard_artifacts

        from components.baseline import write_no_model

        self._settings = settings
        examples = standard_artifacts.Examples()
        examples.uri = str(folder / "examples")
        examples.split_names = json.dumps(["train", "eval"])
        for split in ("train", "eval"):
            to = folder / "examples" / f"Split-{split}"
            to.mkdir(parents=True)
            for file in prepared.glob(f"{split}-*.gz"):
                shutil.copy(file, to)
        graph = standard_artifacts.TransformGraph()
        graph.uri = shutil.copytree(prepared / "graph", str(folder / "graph"))
        # On Kubeflow Pipelines a baseline that does not exist is an artifact without a model.
        missing = standard_artifacts.Model()
        missing.uri = str(folder / "missing")
        write_no_model(missing)
        self.inputs = {"examples": [examples], "transform_graph": [graph], "base_model": [missing]}
        model, model_run = standard_artifacts.Model(), standard_artifacts.ModelRun()
        model.uri, model_run.uri = str(folder / "model"), str(folder / "model_run")
        self.outputs = {"model": [model], "model_run": [model_run]}
        self.model = folder / "model" / "Format-Serving"
        self.job_file = folder / "model_run" / "job.json"
        self.checkpoints = folder / "checkpoints"

    def run(self, strategy, epochs, **training):
        from platforms.training_jobs.executor import TrainingJobExecutor

        config = {
            "training": {**conftest.TRAINING, "strategy": strategy, **training},
            "transform": conftest.TRANSFORM,
            "code": "1",
            "checkpoints": str(self.checkpoints),
        }
        properties = {
            "custom_config": json.dumps(config),
            "train_args": json.dumps({"splits": ["train"]}),
            "eval_args": json.dumps({"splits": ["eval"]}),
            "run_fn": "trainer_module.run_fn.run_fn",
            "strategy": strategy,
            "epochs": epochs,
        }
        variable = {self._settings.VARIABLE: self._settings.model_dump_json()}
        with mock.patch.dict(os.environ, variable):
            TrainingJobExecutor().Do(self.inputs, self.outputs, properties)
