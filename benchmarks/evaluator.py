"""Evaluate a model by our executor and by TFX's own, each in a process of its own.

    python -m benchmarks.evaluator FILE MODEL [--baseline MODEL] [--reviews N] [--json FILE]

FILE is in Kaggle's fastText format, plain or .bz2, and is repeated up to N reviews; MODEL is the
folder of a pushed model. Metrics, slices and thresholds are those of the default settings.

The seconds are those of the component without imports. They depend on the machine and its load;
quote only the ratio. The last line is the greatest relative difference of a metric.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from rich.table import Column, Table

from benchmarks import usage
from benchmarks.peer_files import read_reviews
from trainer_module.loop.memory import peak_rss

MEANS = ("ours", "tfx")
_REVIEWS_PER_FILE = 10_000


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("file", type=Path)
    parser.add_argument("model", type=Path)
    parser.add_argument("--baseline", type=Path, help="folder of another pushed model [none]")
    parser.add_argument("--reviews", type=int, default=400_000, help="N [400000]")
    parser.add_argument(
        "--only", type=usage.some_of(MEANS), default=MEANS, help=f"of {', '.join(MEANS)} [all]"
    )
    parser.add_argument("--json", type=Path, help="output file for the figures")
    arguments = parser.parse_args()
    console = usage.wide_console()
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        models = [str(arguments.model.resolve())]
        if arguments.baseline:
            models.append(str(arguments.baseline.resolve()))
        count = str(arguments.reviews)
        words = [str(arguments.file.resolve()), folder, count]
        usage.run_module("benchmarks.evaluator", "write", *words, log=log)
        for name in arguments.only:
            words = [name, folder, count, *models]
            figures[name] = usage.figures_of("benchmarks.evaluator", *words, log=log)
            console.print(f"{name}: {figures[name]['seconds']:.1f} s")
    console.print(_table(figures))
    console.print(f"{arguments.file}, {usage.cores()} CPUs, Python {platform.python_version()}")
    if len(figures) == len(MEANS):
        difference = _greatest_difference(*(figures[name]["metrics"] for name in MEANS))
        console.print(f"greatest relative difference of a metric: {difference:.1e}")
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1))


def _table(figures: dict[str, Any]) -> Table:
    titles = ("reviews", "s", "CPU s", "µs/review", "peak RSS, MiB", "this / ours", "blessed")
    table = Table(Column("", no_wrap=True), *[Column(title, justify="right") for title in titles])
    ours = figures.get("ours")
    for name, found in figures.items():
        table.add_row(
            name,
            f"{found['reviews']:,}",
            f"{found['seconds']:.1f}",
            f"{found['cpu']:.1f}",
            f"{found['seconds'] / found['reviews'] * 1e6:.0f}",
            f"{found['peak_rss'] / usage.MEBIBYTE:.0f}",
            f"{found['seconds'] / ours['seconds']:.1f}" if ours else "",
            str(found["blessed"]),
        )
    return table


def _greatest_difference(ours: dict[str, float], theirs: dict[str, float]) -> float:
    if ours.keys() != theirs.keys():
        raise SystemExit(f"different metrics: {sorted(ours.keys() ^ theirs.keys())}")
    return max(
        # Two numbers that are not defined are equal.
        0.0
        if math.isnan(value) and math.isnan(ours[name])
        else abs(ours[name] - value) / max(abs(value), 1e-12)
        for name, value in theirs.items()
    )


def _write(file: str, folder: str, reviews: str) -> None:
    import tensorflow as tf

    from preprocessing.fast.encode import encode_examples

    split = f"{folder}/examples/Split-test"
    os.makedirs(split)
    source: Iterator[tuple[int, str]] = islice(cycle(read_reviews(file)), int(reviews))
    number = 0
    while rows := list(islice(source, _REVIEWS_PER_FILE)):
        labels, texts = zip(*rows, strict=True)
        encoded = [text.encode() for text in texts]
        options = tf.io.TFRecordOptions(compression_type="GZIP", compression_level=1)
        with tf.io.TFRecordWriter(f"{split}/data-{number:05d}.gz", options) as writer:
            for example in encode_examples(labels, encoded, [b""] * len(rows), encoded):
                writer.write(example)
        number += 1


def _evaluate(name: str, folder: str, reviews: str, *models: str) -> None:
    from tensorflow_model_analysis import load_metrics
    from tfx.components.evaluator.executor import Executor as TfxExecutor
    from tfx.components.util import examples_utils
    from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor
    from tfx.proto import example_gen_pb2
    from tfx.types import standard_artifacts
    from tfx.utils import proto_utils

    from components.evaluator.component import Executor
    from components.evaluator.files import eval_config
    from components.evaluator.settings import Evaluation

    examples = standard_artifacts.Examples()
    examples.uri, examples.split_names = f"{folder}/examples", '["test"]'
    examples_utils.set_payload_format(examples, example_gen_pb2.FORMAT_TF_EXAMPLE)
    examples_utils.set_file_format(examples, "tfrecords_gzip")
    artifacts = []
    for number, path in enumerate(models):
        model = standard_artifacts.Model()
        model.uri = f"{folder}/{name}/model-{number}"
        os.makedirs(model.uri)
        # TFX expects the model in a folder of this name.
        os.symlink(path, f"{model.uri}/Format-Serving")
        artifacts.append(model)
    evaluation, blessing = standard_artifacts.ModelEvaluation(), standard_artifacts.ModelBlessing()
    evaluation.uri, blessing.uri = f"{folder}/{name}/evaluation", f"{folder}/{name}/blessing"
    settings = Evaluation()
    executor = Executor if name == "ours" else TfxExecutor
    config = eval_config(settings, has_baseline=len(models) > 1)
    start, cpu = time.perf_counter(), time.process_time()
    executor(BaseBeamExecutor.Context(beam_pipeline_args=[])).Do(
        {
            "examples": [examples],
            "model": artifacts[:1],
            **({"baseline_model": artifacts[1:]} if len(artifacts) > 1 else {}),
        },
        {"evaluation": [evaluation], "blessing": [blessing]},
        {
            "eval_config": proto_utils.proto_to_json(config),
            "example_splits": '["test"]',
            "fairness_indicator_thresholds": "null",
            "settings": settings.model_dump_json(),
            "min_accuracy": settings.min_accuracy,
        },
    )
    found = {
        "seconds": time.perf_counter() - start,
        "cpu": time.process_time() - cpu,
        "reviews": int(reviews),
        "peak_rss": peak_rss(),
        "blessed": os.listdir(blessing.uri) == ["BLESSED"],
        "metrics": {
            f"{of_slice.slice_key} {item.key}": item.value.double_value.value
            for of_slice in load_metrics(evaluation.uri)
            for item in of_slice.metric_keys_and_values
            if item.value.HasField("double_value")
        },
    }
    print(json.dumps(found))


if __name__ == "__main__":
    if sys.argv[1:2] == ["write"]:
        _write(*sys.argv[2:])
    elif sys.argv[1:] and sys.argv[1] in MEANS:
        _evaluate(*sys.argv[1:])
    else:
        main()
