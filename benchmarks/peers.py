"""Train our models and their peers on the same files, one after the other, in separate processes.

    python -m benchmarks.peers TRAIN TEST [--only PEER …] [--seeds N]
                               [--reference-steps N] [--set KEY=VALUE] [--json FILE]

TRAIN and TEST are in Kaggle's fastText format, plain or .bz2. Every peer trains with N seeds; all
peers train with a seed before the next one. Train seconds are the time from the peer's own input
format to a trained model, the median over the seeds:

  fasttext      from its prepared text file on disk
  scikit-learn  from texts in memory: vectorizing and fitting
  reference     from padded token ids in memory; N steps [30] are timed and extrapolated,
                with 0 a whole epoch
  ours          from the TFRecords that Transform wrote, through the input pipeline

The time excludes imports, validation and export. The time of fasttext_compressed includes the
compression: 100,000 features that are trained again, as fastText's authors published. The suffix
_compressed of our models is the hyperparameter `compressed`. Our models train on nine tenths of
TRAIN, the default split, so the comparison uses the seconds per 1M reviews of the training. For
fastText and ours the table also has the seconds of one pass. Peak RSS belongs to the training
process. The size is the sum of the files of a model; our files also contain the preprocessing. The
accuracy of our models is measured with `predict_text` of the exported SavedModel.
`benchmarks.peer_results` describes the two intervals of an accuracy. Seconds depend on the machine
and its load; quote only the ratio.

`python -m benchmarks.peer_results` draws the figures of --json.
"""

from __future__ import annotations

import argparse
import functools
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import peer_ours, peer_results, usage
from benchmarks.peer_files import read_reviews
from benchmarks.strategies import MODELS
from trainer_module.settings import TrainingJob

_COMPRESSED = f"{MODELS[0]}_compressed"
_OURS = (*MODELS, _COMPRESSED)
_COMMANDS = {
    "fasttext": ("benchmarks.peer_fasttext",),
    "fasttext_compressed": ("benchmarks.peer_fasttext", "--compressed"),
    "scikit-learn": ("benchmarks.peer_sklearn",),
    "reference": ("benchmarks.reference_cnn_lstm",),
}
PEERS = (*_COMMANDS, *_OURS)
_DEFAULT = (*_COMMANDS, MODELS[0], _COMPRESSED)


def main() -> None:
    arguments = _arguments()
    console = usage.wide_console()
    test_reviews = sum(1 for _ in read_reviews(str(arguments.test)))
    results = []
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as folder:
        trainings = _trainings(arguments, Path(folder))
        for seed in range(1, arguments.seeds + 1):
            for name, train in trainings.items():
                console.print(f"seed {seed}: {name}")
                results.append(peer_results.Result(peer=name, seed=seed, **train(seed)))
    console.print(peer_results.table(peer_results.by_peer(results, test_reviews)))
    usage.print_machine(console, arguments.train)
    if arguments.json:
        peer_results.write(results, test_reviews, arguments.json)


def _arguments() -> argparse.Namespace:
    parser = usage.parser(__doc__)
    parser.add_argument("train", type=Path)
    parser.add_argument("test", type=Path)
    parser.add_argument("--only", nargs="+", choices=PEERS, default=_DEFAULT)
    parser.add_argument("--seeds", type=int, default=3, help="trainings of each peer [3]")
    parser.add_argument("--reference-steps", type=int, default=30)
    return parser.parse_args()


def _trainings(
    arguments: argparse.Namespace, root: Path
) -> dict[str, Callable[[int], dict[str, Any]]]:
    """Return name -> a function of a seed that trains, for each row of the table."""

    @functools.cache
    def job(model: str) -> TrainingJob:
        files = {"train": arguments.train, "test": arguments.test}
        return peer_ours.prepare(root / f"prepared-{model}", files, model, arguments.set)

    found = {}
    for name in arguments.only:
        if name in _COMMANDS:
            found[name] = functools.partial(_peer, name, arguments, root / "log")
            continue
        compressed = name == _COMPRESSED
        prepared = functools.partial(job, MODELS[0] if compressed else name)
        found[name] = functools.partial(_ours, prepared, compressed, arguments, root / name)
    return found


def _peer(name: str, arguments: argparse.Namespace, log: Path, seed: int) -> dict[str, Any]:
    module, *options = _COMMANDS[name]
    words = [str(path.resolve()) for path in (arguments.train, arguments.test)]
    words += ["--seed", str(seed), *options]
    if name == "reference" and arguments.reference_steps:
        words += ["--steps", str(arguments.reference_steps)]
    figures = usage.run_measurement(module, *words, log=log)
    if name == "reference":
        # `seconds` of the reference covers only the measured steps.
        figures |= {"seconds": figures["seconds_per_epoch"], "epochs": 1}
    return {key: figures[key] for key in figures.keys() & peer_results.MEASURED}


def _ours(
    prepared: Callable[[], TrainingJob],
    compressed: bool,
    arguments: argparse.Namespace,
    folder: Path,
    seed: int,
) -> dict[str, Any]:
    changes: dict[str, Any] = {"seed": seed}
    job = prepared()
    if compressed:
        changes["hyperparameters"] = {**job.training.hyperparameters, "compressed": True}
    figures = peer_ours.train(peer_ours.with_training(job, changes), folder)
    found = {
        "seconds": figures["seconds"],
        "examples": figures["examples"],
        "epochs": figures["epochs"],
        "accuracy": peer_ours.accuracy(folder, arguments.test),
        "peak_rss": figures["peak_rss_bytes"],
        "size": sum(f.stat().st_size for f in (folder / peer_ours.MODEL).rglob("*") if f.is_file()),
    }
    # The next seed trains anew in the same folder.
    shutil.rmtree(folder)
    return found


if __name__ == "__main__":
    main()
