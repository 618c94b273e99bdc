"""Ours, in the parts that are measured apart: prepare, train, ask the exported model.

    python -m benchmarks.peer_ours prepare SETTINGS.yaml JOB.json [KEY=VALUE ...]
    python -m benchmarks.peer_ours accuracy SAVED_MODEL TEST

are the processes of their own that `prepare`, `train` and `accuracy` below start; training is
`python -m trainer_module.task JOB.json`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from glob import glob
from itertools import islice
from pathlib import Path
from typing import Any

import yaml

from benchmarks import usage
from benchmarks.peer_files import read_reviews
from trainer_module.settings import TrainingJob

SUMMARY = "run/training.json"
"""Below the folder of a training; written when the last epoch has been evaluated."""
_LAST = "Transform"
_BATCH = 1024


def prepare(
    root: Path, files: Mapping[str, Path], model: str, overrides: Sequence[str]
) -> TrainingJob:
    """Runs the real pipeline up to Transform below `root`; returns the job that trains on it.

    Args:
      files: split -> file with reviews.
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
    usage.run_module(
        __name__,
        "prepare",
        str(config),
        str(job),
        *overrides,
        log=root / "log",
    )
    return TrainingJob.model_validate_json(job.read_text())


def train(job: TrainingJob, folder: Path, cpu_time: usage.CpuTime | None = None) -> dict[str, Any]:
    """Trains `job` with everything that it writes in `folder`; returns its training.json."""
    folder.mkdir(parents=True)
    places = {
        "serving_model_dir": str(folder / "model"),
        "model_run_dir": str(folder / "run"),
        "checkpoint_dir": str(folder / "checkpoints"),
    }
    file = folder / "job.json"
    file.write_text(job.model_copy(update=places).model_dump_json())
    usage.run_module("trainer_module.task", str(file), log=folder / "log", cpu_time=cpu_time)
    return json.loads((folder / SUMMARY).read_text())


def accuracy(folder: Path, test: Path) -> float:
    """Of the model that `train` left in `folder`, asked through `predict_text`."""
    files = [str(folder / "model"), str(test.resolve())]
    return usage.figures_of(__name__, "accuracy", *files, log=folder / "log")["accuracy"]


def repeated(job: TrainingJob, times: int, folder: Path) -> TrainingJob:
    """`job` with its train files `times` times over, as links in `folder`."""
    folder.mkdir(parents=True)
    for pattern in job.train_files:
        for file in glob(pattern):
            for copy in range(times):
                (folder / f"{copy}-{Path(file).name}").symlink_to(file)
    return job.model_copy(update={"train_files": [str(folder / "*")]})


def _run_to_transform(settings: str, job: str, *overrides: str) -> None:
    from tfx.orchestration.local.local_dag_runner import LocalDagRunner
    from tfx.orchestration.pipeline import RunOptions

    from pipeline.config import load_config
    from pipeline.pipeline import create_pipeline
    from platforms.local.platform import Local

    config = load_config(settings, overrides)
    LocalDagRunner().run(
        create_pipeline(config, Local(config)), run_options=RunOptions(to_nodes=[_LAST])
    )
    root = Path(config.paths.root)
    [examples] = root.glob(f"{_LAST}/transformed_examples/*")
    [graph] = root.glob(f"{_LAST}/transform_graph/*")
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


def _ask(model: str, test: str) -> None:
    from serving.predictor import Predictor

    predictor = Predictor(model)
    reviews = read_reviews(test)
    right = total = 0
    while batch := list(islice(reviews, _BATCH)):
        labels, texts = zip(*batch, strict=True)
        answers = predictor.predict(texts)
        right += sum(a.label == label for a, label in zip(answers, labels, strict=True))
        total += len(labels)
    print(json.dumps({"accuracy": right / total}))


if __name__ == "__main__":
    {"prepare": _run_to_transform, "accuracy": _ask}[sys.argv[1]](*sys.argv[2:])
