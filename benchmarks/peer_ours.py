"""Our pipeline in separate parts: preparation, training, and scores of the exported model.

    python -m benchmarks.peer_ours prepare SETTINGS.yaml JOB.json [KEY=VALUE ...]
    python -m benchmarks.peer_ours fit JOB.json
    python -m benchmarks.peer_ours scores SAVED_MODEL TEST

The functions `prepare`, `fit_seconds` and `scores` start these commands in processes of their
own, and `train` starts `python -m trainer_module.task JOB.json`.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import yaml

from benchmarks import peer_files, usage
from pipeline.config import find_settings, read_settings
from preprocessing import features
from preprocessing.labels import Labels, read_labels
from trainer_module.settings import Training, TrainingJob

MODEL = "model"
"""Path of the SavedModel in the folder of a training."""
SUMMARY = "run/training.json"
"""Path of the summary in the folder of a training, which exists after the last evaluation."""
_LAST_COMPONENT = "Transform"
_BATCH = 1024


def prepare(
    root: Path,
    files: Mapping[str, Path],
    model: str,
    overrides: Sequence[str],
    preset: str | None = None,
) -> TrainingJob:
    """Run the real pipeline up to Transform; return the job of a training on its output.

    Args:
      root: the folder for all files of the run.
      files: name of a split -> its file of reviews.
      model: a value of `training.model`.
      overrides: further settings, KEY=VALUE.
      preset: the name of a preset, or a file of settings, on which the run is based. Its section
        `training` is used for its own model alone.
    """
    inputs = root / "input"
    inputs.mkdir(parents=True)
    # Files of several folders may share a name.
    names = {split: f"{split}-{file.name}" for split, file in files.items()}
    for split, file in files.items():
        (inputs / names[split]).symlink_to(file.resolve())
    settings = read_settings(find_settings(preset)) if preset else {}
    training = settings.get("training", {})
    settings |= {
        "paths": {"root": str(root / "runs")},
        "data": {**settings.get("data", {}), "input_base": str(inputs), "splits": names},
        "training": training if training.get("model") == model else {"model": model},
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


def scores(folder: Path, test: Path) -> dict[str, Any]:
    """Return the `peer_files.scores` of `predict_text` of the model that `train` wrote."""
    files = [str(folder / MODEL), str(test.resolve())]
    return usage.run_measurement(__name__, "scores", *files, log=folder / "log")


def write_reviews(root: Path) -> tuple[Path, Path, Labels]:
    """Write the reviews of a run of `prepare` as the peers read them.

    So the peers train on what the reader of the product finds in files of any format, and on all
    reviews that are not in the test split: they have no use for an eval split.

    Args:
      root: the folder of `prepare`.

    Returns:
      The file to train on, the file to test on, both for `peer_files.read_reviews`, and the
      classes.
    """
    [examples] = (root / "runs").glob("ReviewExampleGen/examples/*")
    files = {"train": root / "train.txt", "test": root / "test.txt"}
    for name, splits in (("train", ("train", "eval")), ("test", ("test",))):
        with files[name].open("w", encoding="utf-8", newline="\n") as out:
            for label, text in _reviews(examples, splits):
                # A text may contain characters that Python and fastText read as ends of lines.
                out.write(f"__label__{label + 1} {' '.join(text.split())}\n")
    return files["train"], files["test"], read_labels(str(examples))


def _reviews(examples: Path, splits: Sequence[str]) -> Iterator[tuple[int, str]]:
    import tensorflow as tf

    for split in splits:
        for file in sorted(map(str, examples.glob(f"Split-{split}/*"))):
            for record in tf.data.TFRecordDataset(file, "GZIP").as_numpy_iterator():
                columns = tf.train.Example.FromString(record).features.feature
                text = columns[features.TEXT].bytes_list.value[0].decode()
                yield columns[features.LABEL].int64_list.value[0], text


def with_training(job: TrainingJob, changes: Mapping[str, Any]) -> TrainingJob:
    """Return `job` with changed settings in its section `training`."""
    training = Training.model_validate({**job.training.model_dump(), **changes})
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


def _print_scores(model: str, test: str) -> None:
    from serving.predict_text import load_predict_text

    predict_text = load_predict_text(model)
    reviews = peer_files.read_reviews(test)
    labels: list[int] = []
    predicted: list[int] = []
    while batch := list(islice(reviews, _BATCH)):
        labels += [label for label, _ in batch]
        predicted += predict_text([text.encode() for _, text in batch])["label"].tolist()
    print(json.dumps(peer_files.scores(labels, predicted)))


if __name__ == "__main__":
    commands: dict[str, Callable[..., None]] = {
        "prepare": _run_to_transform,
        "fit": _print_fit_seconds,
        "scores": _print_scores,
    }
    commands[sys.argv[1]](*sys.argv[2:])
