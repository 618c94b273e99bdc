"""Score a file of reviews with the default model in several ways, each in a process of its own.

    python -m benchmarks.predict FILE MODEL [--only MEANS …] [--bulk-reviews N] [--json FILE]

FILE is in Kaggle's fastText format, plain or .bz2; MODEL is the folder of a pushed `ngram_linear`.

  ours             `amazon-reviews predict --input FILE --output CSV`
  loop             a loop over batches of 4096 reviews with the signature `predict_text`
  bulk-inferrer    TFX's BulkInferrer on the first N reviews, from Examples that exist already
  fasttext         fastText on FILE, including the same preparation as for its training
  fasttext-text    fastText on the prepared text file, without the preparation

The seconds include loading the model, reading FILE and writing the predictions, but no imports.
fastText's model is trained on FILE beforehand. Seconds depend on the machine and its load; quote
only the ratio.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from rich.table import Column, Table

from benchmarks import usage
from benchmarks.peer_fasttext import fit, prepare
from benchmarks.peer_files import read_reviews
from core.machine import peak_rss

MEANS = ("ours", "loop", "bulk-inferrer", "fasttext", "fasttext-text")
_TRAIN = "train-fasttext"
_BATCH = 4096


def main() -> None:
    parser = usage.parser(__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("model", type=Path)
    parser.add_argument("--only", nargs="+", choices=MEANS, default=MEANS)
    parser.add_argument(
        "--bulk-reviews", type=int, default=50_000, help="reviews of bulk-inferrer [50000]"
    )
    arguments = parser.parse_args()
    console = usage.wide_console()
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        words = [str(arguments.file.resolve()), str(arguments.model.resolve()), folder]
        log = Path(folder) / "log"
        if any(name.startswith("fasttext") for name in arguments.only):
            usage.run_module("benchmarks.predict", _TRAIN, *words, log=log)
        for name in arguments.only:
            more = [str(arguments.bulk_reviews)]
            figures[name] = usage.run_measurement(
                "benchmarks.predict", name, *words, *more, log=log
            )
            console.print(f"{name}: {figures[name]['seconds']:.1f} s")
    console.print(_table(figures))
    usage.print_machine(console, arguments.file)
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1))


def _table(figures: dict[str, Any]) -> Table:
    titles = ("reviews", "s", "CPU s", "reviews/s", "peak RSS, MiB", "ours / this")
    table = Table(Column("", no_wrap=True), *[Column(title, justify="right") for title in titles])
    ours = figures.get("ours")
    for name, found in figures.items():
        rate = found["reviews"] / found["seconds"]
        ratio = f"{ours['reviews'] / ours['seconds'] / rate:.2f}" if ours else ""
        table.add_row(
            name,
            f"{found['reviews']:,}",
            f"{found['seconds']:.1f}",
            f"{found['cpu']:.1f}",
            f"{rate:,.0f}",
            f"{found['peak_rss'] / usage.MEBIBYTE:.0f}",
            ratio,
        )
    return table


def _ours(file: str, model: str, folder: str, _: str) -> None:
    from core.processes import large_imports

    # The command imports in the same way.
    with large_imports():
        from preprocessing.reading.records import ReadOptions
        from serving.batch.run import score_files

    output = os.path.join(folder, "ours.csv")
    start = _start()
    scored = score_files([file], output, model, ReadOptions())
    _print(start, scored.reviews)


def _loop(file: str, model: str, folder: str, _: str) -> None:
    import tensorflow as tf

    start = _start()
    predict = tf.saved_model.load(model).signatures["predict_text"]
    position = 0
    with open(os.path.join(folder, "loop.csv"), "w") as out:
        for texts in _batches(file):
            outputs = predict(texts=tf.constant(texts))
            for probability, label in zip(
                outputs["probability"].numpy(), outputs["label"].numpy(), strict=True
            ):
                position += 1
                out.write(f"{position},{probability},{label}\n")
    _print(start, position)


def _bulk_inferrer(file: str, model: str, folder: str, limit: str) -> None:
    import tensorflow as tf
    from tfx.components.bulk_inferrer.executor import Executor
    from tfx.components.util import examples_utils
    from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor
    from tfx.proto import example_gen_pb2
    from tfx.types import standard_artifacts

    from preprocessing.fast.encode import encode_examples

    examples, result = standard_artifacts.Examples(), standard_artifacts.InferenceResult()
    examples.uri, result.uri = f"{folder}/examples", f"{folder}/inference"
    examples.split_names = '["all"]'
    examples_utils.set_payload_format(examples, example_gen_pb2.FORMAT_TF_EXAMPLE)
    os.makedirs(f"{examples.uri}/Split-all")
    reviews = list(islice(read_reviews(file), int(limit)))
    texts = [text.encode() for _, text in reviews]
    with tf.io.TFRecordWriter(f"{examples.uri}/Split-all/data.gz", "GZIP") as writer:
        for example in encode_examples({"text": texts}):
            writer.write(example)
    pushed = standard_artifacts.Model()
    # TFX expects the model in a folder of this name.
    pushed.uri = f"{folder}/model"
    os.makedirs(pushed.uri)
    os.symlink(model, f"{pushed.uri}/Format-Serving")
    start = _start()
    # The in-process runner, because Beam's default first tries to download Prism.
    args = ["--runner=apache_beam.runners.portability.fn_api_runner.FnApiRunner"]
    Executor(BaseBeamExecutor.Context(beam_pipeline_args=args)).Do(
        {"examples": [examples], "model": [pushed]},
        {"inference_result": [result]},
        {"data_spec": "{}", "model_spec": "{}"},
    )
    _print(start, len(texts))


def _train_fasttext(file: str, _: str, folder: str) -> None:
    prepared = Path(folder) / "prepared.txt"
    prepare(file, prepared)
    fit(prepared).save_model(f"{folder}/fasttext.bin")


def _fasttext(file: str, _: str, folder: str, __: str) -> None:
    start = _start()
    text = Path(folder) / "again.txt"
    prepare(file, text)
    _predict_fasttext(start, text, folder)


def _fasttext_text(_: str, __: str, folder: str, ___: str) -> None:
    _predict_fasttext(_start(), Path(folder) / "prepared.txt", folder)


def _predict_fasttext(start: tuple[float, float], text: Path, folder: str) -> None:
    import fasttext

    model = fasttext.load_model(f"{folder}/fasttext.bin")
    position = 0
    with open(f"{folder}/fasttext.csv", "w") as out, text.open(encoding="utf-8") as lines:
        while batch := [line.rstrip("\n").split(" ", 1)[1] for line in islice(lines, _BATCH)]:
            labels, probabilities = model.predict(batch)
            for label, probability in zip(labels, probabilities, strict=True):
                position += 1
                out.write(f"{position},{probability[0]},{label[0]}\n")
    _print(start, position)


def _batches(file: str) -> Iterator[list[str]]:
    reviews = read_reviews(file)
    while batch := [text for _, text in islice(reviews, _BATCH)]:
        yield batch


def _start() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def _print(start: tuple[float, float], reviews: int) -> None:
    seconds, cpu = time.perf_counter() - start[0], time.process_time() - start[1]
    found = {"seconds": seconds, "cpu": cpu, "reviews": reviews, "peak_rss": peak_rss()}
    print(json.dumps(found))


_CHILDREN: dict[str, Callable[..., None]] = {
    "ours": _ours,
    "loop": _loop,
    "bulk-inferrer": _bulk_inferrer,
    "fasttext": _fasttext,
    "fasttext-text": _fasttext_text,
    _TRAIN: _train_fasttext,
}

if __name__ == "__main__":
    if sys.argv[1:] and sys.argv[1] in _CHILDREN:
        _CHILDREN[sys.argv[1]](*sys.argv[2:])
    else:
        main()
