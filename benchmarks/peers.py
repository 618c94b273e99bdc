"""Train our models and their peers on the same files, one after the other, in separate processes.

    python -m benchmarks.peers TRAIN TEST [--only PEER …] [--seeds N]
                               [--preset NAME] [--fasttext JSON] [--scikit-learn JSON]
                               [--reference-steps N] [--set KEY=VALUE] [--json FILE]

TRAIN and TEST are files that the pipeline reads, such as Kaggle's; `--set data.KEY=VALUE` has their
settings, such as `--set data.labels=each`. --preset names a preset or a file of settings, whose
section `training` applies to its own model alone. The peers train on the reviews that
ReviewExampleGen finds, without line breaks. --fasttext and --scikit-learn have the options of these
peers, see their modules. Every peer trains with N seeds; all peers train with a seed before the
next one. Train seconds are the time from the peer's own input format to a trained model, the median
over the seeds:

  fasttext      from its prepared text file on disk
  scikit-learn  from texts in memory: vectorizing and fitting
  reference     from padded token ids in memory; N steps [30] are timed and extrapolated,
                with 0 a whole epoch
  ours          from the TFRecords that Transform wrote, through the input pipeline

Macro-F1 is the mean of the F1 of the classes; MAE, the mean absolute error of ordered classes, is
in steps of their order.

The time excludes imports, validation and export. That of fasttext_compressed includes the
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
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks import peer_ours, peer_results, usage
from benchmarks.peer_files import read_reviews
from trainer_module.settings import MODELS, TrainingJob

_COMPRESSED = f"{MODELS[0]}_compressed"
_OURS = (*MODELS, _COMPRESSED)
_COMMANDS = {
    "fasttext": ("benchmarks.peer_fasttext",),
    "fasttext_compressed": ("benchmarks.peer_fasttext", "--compressed"),
    "scikit-learn": ("benchmarks.peer_sklearn",),
    "reference": ("benchmarks.reference_cnn_lstm",),
}
_WITH_OPTIONS = ("fasttext", "scikit-learn")
PEERS = (*_COMMANDS, *_OURS)
_DEFAULT = (*_COMMANDS, MODELS[0], _COMPRESSED)


def main() -> None:
    arguments = _arguments()
    console = usage.wide_console()
    files = {"train": arguments.train, "test": arguments.test}
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as folder:
        bench = Bench(arguments, files, Path(folder))
        results = train_all(bench, arguments.seeds, console)
        test_reviews = bench.test_reviews
    console.print(peer_results.table(peer_results.by_peer(results, test_reviews)))
    usage.print_machine(console, arguments.train)
    if arguments.json:
        peer_results.write(results, test_reviews, arguments.json)


def _arguments() -> argparse.Namespace:
    parser = usage.parser(__doc__)
    parser.add_argument("train", type=Path)
    parser.add_argument("test", type=Path)
    add_options(parser)
    return parser.parse_args()


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a `Bench`, and the number of seeds, to a parser."""
    parser.add_argument("--only", nargs="+", choices=PEERS, default=_DEFAULT)
    parser.add_argument("--seeds", type=int, default=3, help="trainings of each peer [3]")
    parser.add_argument("--preset", help="preset or file of settings of ours")
    for peer in _WITH_OPTIONS:
        parser.add_argument(f"--{peer}", default="{}", help="options of this peer, JSON")
    parser.add_argument("--reference-steps", type=int, default=30)


def train_all(bench: Bench, seeds: int, console: Console) -> list[peer_results.Result]:
    """Train every peer with each seed; all peers train with a seed before the next one.

    Args:
      bench: the files and the peers.
      seeds: the number of seeds.
      console: the console that names each training.
    """
    results = []
    for seed in range(1, seeds + 1):
        for name in bench.peers:
            console.print(f"seed {seed}: {name}")
            results.append(peer_results.Result(peer=name, seed=seed, **bench.train(name, seed)))
    return results


class Bench:
    """The files of a comparison, and the training of each peer on them.

    Args:
      arguments: the arguments of the command line, see `add_options`.
      files: name of a split -> its file of reviews.
      root: the folder for all files.
    """

    def __init__(self, arguments: argparse.Namespace, files: Mapping[str, Path], root: Path):
        self._arguments, self._files, self._root = arguments, files, root
        self._jobs: dict[str, TrainingJob] = {}
        first = next((name for name in arguments.only if name in MODELS), MODELS[0])
        self._job(first)
        self._train, self._test, self._labels = peer_ours.write_reviews(self._folder(first))

    @property
    def peers(self) -> list[str]:
        """The peers that train; the reference has two classes."""
        chosen = self._arguments.only
        return [name for name in chosen if self._labels.is_binary or name != "reference"]

    @property
    def test_reviews(self) -> int:
        """The number of test reviews."""
        return sum(1 for _ in read_reviews(str(self._test)))

    def train(self, name: str, seed: int) -> dict[str, Any]:
        """Train a peer; return the figures of a `peer_results.Result`.

        Args:
          name: one of PEERS.
          seed: the seed of the training.
        """
        found = self._peer(name, seed) if name in _COMMANDS else self._ours(name, seed)
        if not self._labels.is_ordered:
            found["mean_absolute_error"] = None
        return found

    def _peer(self, name: str, seed: int) -> dict[str, Any]:
        module, *options = _COMMANDS[name]
        words = [str(self._train), str(self._test), "--seed", str(seed), *options]
        if name in _WITH_OPTIONS:
            words += ["--options", getattr(self._arguments, name.replace("-", "_"))]
        if name == "reference" and self._arguments.reference_steps:
            words += ["--steps", str(self._arguments.reference_steps)]
        figures = usage.run_measurement(module, *words, log=self._root / "log")
        if name == "reference":
            # `seconds` of the reference covers only the measured steps.
            figures |= {"seconds": figures["seconds_per_epoch"], "epochs": 1}
        return {key: figures[key] for key in figures.keys() & peer_results.MEASURED}

    def _ours(self, name: str, seed: int) -> dict[str, Any]:
        compressed = name == _COMPRESSED
        changes: dict[str, Any] = {"seed": seed}
        job = self._job(MODELS[0] if compressed else name)
        if compressed:
            changes["hyperparameters"] = {**job.training.hyperparameters, "compressed": True}
        folder = self._root / name
        figures = peer_ours.train(peer_ours.with_training(job, changes), folder)
        exported = (folder / peer_ours.MODEL).rglob("*")
        found = {
            "seconds": figures["seconds"],
            "examples": figures["examples"],
            "epochs": figures["epochs"],
            **peer_ours.scores(folder, self._test),
            "peak_rss": figures["peak_rss_bytes"],
            "size": sum(file.stat().st_size for file in exported if file.is_file()),
        }
        # The next seed trains anew in the same folder.
        shutil.rmtree(folder)
        return found

    def _job(self, model: str) -> TrainingJob:
        if model not in self._jobs:
            self._jobs[model] = peer_ours.prepare(
                self._folder(model), self._files, model, self._arguments.set, self._arguments.preset
            )
        return self._jobs[model]

    def _folder(self, model: str) -> Path:
        return self._root / f"prepared-{model}"


if __name__ == "__main__":
    main()
