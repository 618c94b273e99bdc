"""Our pipeline in separate parts: preparation, training, and accuracy of the exported model.

    python -m benchmarks.peer_ours prepare SETTINGS.yaml JOB.json [KEY=VALUE ...]
    python -m benchmarks.peer_ours fit JOB.json
    python -m benchmarks.peer_ours accuracy SAVED_MODEL TEST

The functions `prepare`, `fit_seconds` and `accuracy` start these commands in processes of their
own, and `train` starts `python -m trainer_module.task JOB.json`.
"""

from __future__ import annotations

import json
import operator
import sys
import time
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import yaml

from benchmarks import usage
from benchmarks.peer_files import read_reviews
from trainer_module.settings import Training, TrainingJob

MODEL = "model"
"""Path of the SavedModel in the folder of a training."""
SUMMARY = "run/training.json"
"""Path of the summary in the folder of a training, which exists after the last evaluation."""
_LAST_COMPONENT = "Transform"
_BATCH = 1024


def prepare(
    root: Path, files: Mapping[str, Path], model: str, overrides: Sequence[str]
) -> TrainingJob:
    """Run the real pipeline up to Transform; return the job of a training on its output.

    Args:
      root: the folder for all files of the run.
      files: name of a split -> its file of reviews.
      model: a value of `training.model`.
      overrides: further settings, KEY=VALUE.
    """
    inputs = root / "input"
    inputs.mkdir(parents=True)
    # Files of several folders may share a name.
    names = {split: f"{split}-{file.name}" for split, file in files.items()}
    for split, file in files.items():
        (inputs / names[split]).symlink_to(file.resolve())
    settings = {
        "paths": {"root": str(root / "runs")},
        "data": {"input_base": str(inputs), "splits": names},
        "training": {"model": model},
    }
    config, job = root / "config.yaml", root / "job.json"
    config.write_text(yaml.safe_dump(settings))
    usage.run_module(__name__, "prepare", str(config), str(job), *overrides, log=root / "log")
    return TrainingJob.model_validate_json(job.read_text())


def train(job: TrainingJob, folder: Path) -> dict[str, Any]:
    """Run a training that writes all its files to `folder`; return its training.json."""
    usage.run_module("trainer_module.task", _write_job(job, folder), log=folder / "log")
    return json.loads((folder / SUMMARY).read_text())


def fit_seconds(job: TrainingJob, folder: Path) -> dict[str, Any]:
    """Run a training in one process, without the export; return its training.json.

    The additional key `fit_seconds` has the seconds of everything except imports: counting and
    reading the TFRecords, building the model, tracing, training, validation, checkpoints.
    """
    figures = usage.run_measurement(__name__, "fit", _write_job(job, folder), log=folder / "log")
    return figures | json.loads((folder / SUMMARY).read_text())


def _write_job(job: TrainingJob, folder: Path) -> str:
    """Write `job` with all its outputs in a new folder; return the path of the file."""
    folder.mkdir(parents=True)
    outputs = {
        "serving_model_dir": str(folder / MODEL),
        "model_run_dir": str(folder / "run"),
        "checkpoint_dir": str(folder / "checkpoints"),
    }
    file = folder / "job.json"
    file.write_text(job.model_copy(update=outputs).model_dump_json())
    return str(file)


def accuracy(folder: Path, test: Path) -> float:
    """Return the accuracy of `predict_text` of the model that `train` wrote to `folder`."""
    files = [str(folder / MODEL), str(test.resolve())]
    return usage.run_measurement(__name__, "accuracy", *files, log=folder / "log")["accuracy"]


def with_training(job: TrainingJob, changes: Mapping[str, Any]) -> TrainingJob:
    """Return `job` with changed settings in its section `training`."""
    training = Training.model_validate(job.training.model_dump() | changes)
    return job.model_copy(update={"training": training})


def _run_to_transform(settings: str, job: str, *overrides: str) -> None:
    from tfx.orchestration.local.local_dag_runner import LocalDagRunner
    from tfx.orchestration.pipeline import RunOptions

    from pipeline.config import load_config
    from pipeline.pipeline import create_pipeline
    from platforms.local.platform import Local

    config = load_config(settings, overrides)
    LocalDagRunner().run(
        create_pipeline(config, Local(config)), run_options=RunOptions(to_nodes=[_LAST_COMPONENT])
    )
    root = Path(config.paths.root)
    [examples] = root.glob(f"{_LAST_COMPONENT}/transformed_examples/*")
    [graph] = root.glob(f"{_LAST_COMPONENT}/transform_graph/*")
    written = TrainingJob(
        train_files=[str(examples / "Split-train" / "*")],
        eval_files=[str(examples / "Split-eval" / "*")],
        transform_graph=str(graph),
        serving_model_dir="",
        model_run_dir="",
        checkpoint_dir="",
        training=config.training,
        transform=config.transform,
    )
    Path(job).write_text(written.model_dump_json())


def _print_fit_seconds(job: str) -> None:
    from trainer_module.training import train_model

    parsed = TrainingJob.model_validate_json(Path(job).read_text())
    start = time.perf_counter()
    train_model(parsed, None)
    print(json.dumps({"fit_seconds": time.perf_counter() - start}))


def _print_accuracy(model: str, test: str) -> None:
    from serving.predict_text import load_predict_text

    predict_text = load_predict_text(model)
    reviews = read_reviews(test)
    right = total = 0
    while batch := list(islice(reviews, _BATCH)):
        labels, texts = zip(*batch, strict=True)
        predicted = predict_text([text.encode() for text in texts])["label"].tolist()
        right += sum(map(operator.eq, predicted, labels))
        total += len(labels)
    print(json.dumps({"accuracy": right / total}))


if __name__ == "__main__":
    commands = {
        "prepare": _run_to_transform,
        "fit": _print_fit_seconds,
        "accuracy": _print_accuracy,
    }
    commands[sys.argv[1]](*sys.argv[2:])
