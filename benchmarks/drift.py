"""How often `amazon-reviews watch` raises an alarm, with and without a change of the reviews.

    python -m benchmarks.drift [--data FOLDER] [--splits N] [--draws N]
        [--models FOLDER] [--evidently PYTHON] [--set KEY=VALUE] [--json FILE]

FOLDER [data] has the sources: `lara/train.ft.txt.bz2` and `lara/test.ft.txt.bz2`, most of which
the model is trained on, `All_Beauty_5.json.gz` and `amazon_baby_subset.csv`.

The model scores 30,000 reviews of `lara` that it has not seen, once, and each changed form of some
of them. Each of N splits [200] divides the 30,000 at random into a reference of 10,000 reviews, of
which 1,000 have a text, and new ones: the first 100, 1,000 and 10,000 of the others. An alarm is
false. N draws [20] of each change replace the new reviews by changed ones.

PYTHON is the interpreter of an environment with Evidently 0.7. Its text drift with its defaults
judges the first draws of 1,000 new reviews, with the same texts. The models in FOLDER [a temporary
one] are trained unless an earlier call has trained them.

The last table has the error of the estimated accuracy on other categories, in points, and that of
average thresholded confidence (Garg et al. 2022) on the same scores. Two more models are trained
without the reviews that name a camera or a phone, and are tried on these.
"""

from __future__ import annotations

import argparse
import bz2
import json
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.table import Table

from benchmarks import drift_changes, usage
from preprocessing.labels import SENTIMENT
from preprocessing.reading.records import ReadOptions
from serving.drift import domain, reference, shares
from serving.drift.accuracy import estimate_accuracy
from serving.drift.compare import FALSE_ALARMS
from serving.drift.new_reviews import NewReviews, read_new_reviews, score
from serving.drift.reference import TEXTS, ScoredReviews

SIZES = (100, 1_000, 10_000)
_HELD_OUT, _REFERENCE = 30_000, 10_000
_TRAINED = 60_000
"""Number of reviews that the models without a category are trained on."""
_UNSURE = 0.7
_EVIDENTLY_SPLITS, _EVIDENTLY_DRAWS, _EVIDENTLY_SIZE = 50, 5, 1_000
OTHERS = {"beauty": "All_Beauty_5.json.gz", "baby": "amazon_baby_subset.csv"}
CATEGORIES = ("camera", "phone")
_UNLABELLED, _LABELLED = ("scores", "words", "unsure"), ("accuracy", "labels")


class Pool(NamedTuple):
    """Reviews with the scores of a model.

    Attributes:
      texts: the beginnings of the texts.
      scores: float32 [reviews].
      labels: int64 [reviews].
    """

    texts: Sequence[bytes]
    scores: np.ndarray
    labels: np.ndarray

    def take(self, rows: np.ndarray) -> Pool:
        """Return some of the reviews."""
        return Pool([self.texts[n] for n in rows.tolist()], self.scores[rows], self.labels[rows])


_Change = Callable[[np.random.Generator, Pool], Pool]
"""A function that returns other reviews in place of some."""


def main() -> None:
    arguments = _arguments()
    console = usage.wide_console()
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as scratch:
        folder = arguments.models or Path(scratch)
        lines = _lines(arguments.data)
        model = _train(lines[_HELD_OUT:], folder / "lara", arguments.set)
        pool = _score(lines[:_HELD_OUT], model)
        rival = Evidently(arguments.evidently) if arguments.evidently else None
        rows = _alarms(pool, model, arguments, rival)
        _print_alarms(console, rows, rival is not None)
        errors = list(_errors(lines, model, folder, arguments))
    _print_errors(console, errors)
    usage.print_machine(console, "alarms without and with labels")
    if arguments.json:
        arguments.json.write_text(json.dumps({"alarms": rows, "errors": errors}, indent=1))


def _arguments() -> argparse.Namespace:
    parser = usage.parser(__doc__)
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--splits", type=int, default=200)
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--models", type=Path, help="folder of the trained models")
    parser.add_argument("--evidently", help="interpreter with Evidently")
    return parser.parse_args()


def _lines(data: Path) -> list[bytes]:
    """Return all lines of `lara` in random order."""
    lines = []
    for name in ("train", "test"):
        with bz2.open(data / "lara" / f"{name}.ft.txt.bz2") as file:
            lines += file.read().splitlines()
    random.Random(0).shuffle(lines)
    return lines


def _train(lines: list[bytes], folder: Path, settings: list[str]) -> str:
    """Run the pipeline on lines in the format of fastText; return the folder of the model."""  # noqa: DOC501
    for version in sorted(folder.glob("serving/*")):
        return str(version)
    inputs = folder / "input"
    inputs.mkdir(parents=True, exist_ok=True)
    (inputs / "train.ft.txt").write_bytes(b"\n".join(lines[_REFERENCE:]) + b"\n")
    (inputs / "test.ft.txt").write_bytes(b"\n".join(lines[:_REFERENCE]) + b"\n")
    given = {
        "paths.root": str(folder),
        "paths.serving": str(folder / "serving"),
        "data.input_base": str(inputs),
        "data.splits": json.dumps({"train": "train.ft.txt", "test": "test.ft.txt"}),
    }
    words = [f"{key}={value}" for key, value in given.items()] + settings
    command = [sys.executable, "amazon_reviews_start.py", "run", "--config", "amazon"]
    log = folder / "log"
    with log.open("w") as out:
        options = [word for each in words for word in ("--set", each)]
        code = subprocess.call([*command, *options], stdout=out, stderr=out, cwd=usage.REPOSITORY)
    if code:
        raise usage.fail(f"the run ended with {code}", log)
    [version] = (folder / "serving").iterdir()
    return str(version)


def _score(lines: list[bytes], model: str) -> Pool:
    labels = np.array([line[9:10] == b"2" for line in lines], np.int64)
    return _scored([line.split(b" ", 1)[1] for line in lines], labels, model)


def _scored(texts: list[bytes], labels: np.ndarray, model: str) -> Pool:
    from serving.predict_text import load_predict_text

    new = NewReviews(texts, labels, len(texts), {}, ())
    scored = score(new, load_predict_text(model), SENTIMENT)
    return Pool([reference.beginning(text) for text in texts], scored.scores, labels)


def _other(file: Path, model: str) -> Pool:
    """Return the reviews of another source, which the reader of the product reads."""
    found = read_new_reviews([str(file)], ReadOptions(), SENTIMENT)
    assert found.labels is not None
    return _scored(list(found.texts), found.labels, model)


def _alarms(
    pool: Pool, model: str, arguments: argparse.Namespace, rival: Evidently | None
) -> list[dict[str, Any]]:
    """Return the numbers of alarms of each change and size."""
    changed: dict[str, _Change | None] = {"none": None}
    part = pool.take(np.arange(12_000))
    for name, of_texts in drift_changes.CHANGES.items():
        changed[name] = _replaced_by(_scored(of_texts(list(part.texts)), part.labels, model))
    for name, file in OTHERS.items():
        changed[name] = _replaced_by(_other(arguments.data / file, model))
    changed["10 % copies of one"] = _copies
    changed["60 % positive"] = _more_positive
    rows = []
    for name, change in changed.items():
        found: list[dict[int, tuple[bool, bool]]] = []
        of_rival: list[bool] = []
        for seed in range(arguments.splits if change is None else arguments.draws):
            rng = np.random.default_rng(seed)
            order = rng.permutation(len(pool.texts))
            old = pool.take(order[:_REFERENCE])
            new = pool.take(order[_REFERENCE : _REFERENCE + SIZES[-1]])
            if change is not None:
                new = change(rng, new)
            is_asked = rival and seed < (_EVIDENTLY_DRAWS if change else _EVIDENTLY_SPLITS)
            if rival and is_asked:
                rival.ask(old.texts[:TEXTS], new.texts[:_EVIDENTLY_SIZE])
            found.append(_judge(old, new, seed))
            if rival and is_asked:
                of_rival.append(rival.is_drift())
        rows += [
            {
                "change": name,
                "reviews": size,
                "draws": len(found),
                "alarms": sum(each[size][0] for each in found),
                "alarms with labels": sum(each[size][1] for each in found),
                "evidently draws": len(of_rival) if size == _EVIDENTLY_SIZE else 0,
                "evidently": sum(of_rival) if size == _EVIDENTLY_SIZE else 0,
            }
            for size in SIZES
        ]
        print(json.dumps(rows[-len(SIZES) :]), file=sys.stderr, flush=True)
    return rows


def _judge(old: Pool, new: Pool, seed: int) -> dict[int, tuple[bool, bool]]:
    """Return for each size whether there is an alarm without and with labels.

    The classifier of words reads at most TEXTS reviews, so it has one result for all larger sizes.
    """
    words: dict[int, float] = {}
    alarms = {}
    for size in SIZES:
        here = new.take(np.arange(min(size, len(new.texts))))
        number = min(size, TEXTS)
        if number not in words:
            words[number] = domain.compare_texts(
                old.texts[:TEXTS], here.texts[:number], seed
            ).p_value
        p_values = _p_values(old, here) | {"words": words[number]}
        without = {name: p_values[name] for name in _UNLABELLED}
        alarms[size] = (
            bool(shares.alarms(without, FALSE_ALARMS)),
            bool(shares.alarms(p_values, FALSE_ALARMS)),
        )
    return alarms


def _p_values(old: Pool, new: Pool) -> dict[str, float]:
    def counts(is_true: Callable[[Pool], np.ndarray]) -> list[tuple[int, int]]:
        return [(int(is_true(each).sum()), len(each.scores)) for each in (old, new)]

    unsure = counts(lambda each: np.maximum(each.scores, 1 - each.scores) < _UNSURE)
    right = counts(lambda each: (each.scores > 0.5) == each.labels)
    labels = (np.bincount(each.labels, minlength=2) for each in (old, new))
    return {
        "scores": shares.score_distance(old.scores, new.scores, SENTIMENT).p_value,
        "unsure": shares.share_p_value(*unsure),
        "accuracy": shares.drop_p_value(*right),
        "labels": shares.label_p_value(*labels),
    }


def _replaced_by(pool: Pool) -> _Change:
    """Return the change to the reviews of `pool`, in random order."""
    return lambda rng, _: pool.take(rng.permutation(len(pool.texts)))


def _copies(rng: np.random.Generator, new: Pool) -> Pool:
    """Return reviews of which every tenth one is a copy of one review."""
    rows = np.arange(len(new.texts))
    rows[::10] = rng.integers(len(rows))
    return new.take(rows)


def _more_positive(rng: np.random.Generator, new: Pool) -> Pool:
    """Return reviews of which 60 % are positive, in random order."""
    positive, negative = np.flatnonzero(new.labels == 1), np.flatnonzero(new.labels == 0)
    number = min(int(len(positive) / 0.6), len(new.texts))
    kept = [positive[: int(0.6 * number)], negative[: int(0.4 * number)]]
    return new.take(rng.permutation(np.concatenate(kept)))


class Evidently:
    """A process with Evidently's text drift.

    Args:
      python: the interpreter of its environment.
    """

    def __init__(self, python: str):
        script = usage.REPOSITORY / "benchmarks" / "drift_evidently.py"
        self._process = subprocess.Popen(
            [python, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, old: Sequence[bytes], new: Sequence[bytes]) -> None:
        """Start a comparison of texts."""
        assert self._process.stdin
        texts = [[text.decode() for text in each] for each in (old, new)]
        self._process.stdin.write(json.dumps(texts) + "\n")
        self._process.stdin.flush()

    def is_drift(self) -> bool:
        """Return whether Evidently has found a drift in the last comparison."""
        assert self._process.stdout
        return bool(json.loads(self._process.stdout.readline()))


def _errors(
    lines: list[bytes], model: str, folder: Path, arguments: argparse.Namespace
) -> Iterator[dict[str, Any]]:
    """Yield the estimated and the true accuracy of each model on each other category."""
    models: dict[str, tuple[str, dict[str, Pool]]] = {"all of lara": (model, {})}
    for category in CATEGORIES:
        pattern = re.compile(rb"\b" + category.encode() + rb"s?\b", re.IGNORECASE)
        without = [line for line in lines if not pattern.search(line)][: _TRAINED + _REFERENCE]
        of_category = [line for line in lines if pattern.search(line)][:_REFERENCE]
        trained = _train(without, folder / category, arguments.set)
        models[f"without {category}s"] = trained, {category: _score(of_category, trained)}
    for name, (version, own) in models.items():
        known = reference.read(version, SENTIMENT)
        assert known.labels is not None
        others = {key: _other(arguments.data / file, version) for key, file in OTHERS.items()}
        for category, pool in (own | others).items():
            found = estimate_accuracy(known.scores, known.labels, pool.scores, SENTIMENT)
            yield {
                "model": name,
                "category": category,
                "reviews": len(pool.scores),
                "before": _accuracy(known.scores, known.labels),
                "accuracy": _accuracy(pool.scores, pool.labels),
                "estimate": found.value,
                "interval": found.interval,
                "thresholded": _thresholded(known, pool.scores),
            }


def _accuracy(scores: np.ndarray, labels: np.ndarray) -> float:
    return float(np.mean((scores > 0.5) == labels))


def _thresholded(known: ScoredReviews, new: np.ndarray) -> float:
    """Return average thresholded confidence (Garg et al. 2022)."""
    confidence = np.sort(np.maximum(known.scores, 1 - known.scores))
    wrong = int(np.count_nonzero((known.scores > 0.5) != known.labels))
    return float(np.mean(np.maximum(new, 1 - new) >= confidence[wrong]))


def _print_alarms(console: Any, rows: list[dict[str, Any]], has_rival: bool) -> None:
    columns = ["change", "new reviews", "alarms", "alarms with labels"]
    table = Table(*columns, *(["Evidently"] if has_rival else []))
    for row in rows:
        cells = [row["change"], f"{row['reviews']:,}"]
        cells += [f"{row[key] / row['draws']:.1%}" for key in columns[2:]]
        if has_rival:
            draws = row["evidently draws"]
            cells.append(f"{row['evidently'] / draws:.0%}" if draws else "–")
        table.add_row(*cells)
    console.print(table)


def _print_errors(console: Any, errors: list[dict[str, Any]]) -> None:
    table = Table("model", "category", "accuracy", "estimate", "error", "error of ATC")
    for row in errors:
        true = row["accuracy"]
        differences = (100 * (row[key] - true) for key in ("estimate", "thresholded"))
        cells = (f"{true:.4f}", f"{row['estimate']:.4f}", *(f"{n:+.2f}" for n in differences))
        table.add_row(row["model"], row["category"], *cells)
    console.print(table)
    for key in ("estimate", "thresholded"):
        mean = np.mean([abs(row[key] - row["accuracy"]) for row in errors])
        console.print(f"mean absolute error of {key}: {100 * mean:.2f} points")


if __name__ == "__main__":
    main()
