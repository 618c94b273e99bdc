"""The first ten seconds of a report: the verdict, the thresholds and the tiles."""

from __future__ import annotations

import re
from typing import NamedTuple

from components.evaluator.files import Results
from components.evaluator.gates import deciding
from components.evaluator.metrics import ACCURACY, constant_answer, constant_share
from components.node_ids import TRAINER
from components.run_report import words
from components.run_report.content import Content
from components.run_report.verdict import Decision
from components.serving_check.results import CheckResults


class Tile(NamedTuple):
    """A figure in large type: its title, the value, and a note."""

    title: str
    value: str
    note: str = ""


def decision(content: Content) -> Decision:
    """Return what decided about the model of a run."""
    run, check = content.run, content.check
    thresholds = deciding(content.evaluation.checks()) if content.evaluation else None
    refused = check.cause if check else ""
    return Decision(run.blessed, thresholds, refused, bool(run.pushed_to), run.error)


def tiles(content: Content) -> list[Tile]:
    """Return the tiles of a report: accuracy, comparisons, reviews, time and size."""
    found = []
    if content.evaluation:
        found += _of_evaluation(content.evaluation, content.run.baseline)
    if content.input:
        counts = content.input.total.examples
        title = content.labels.nouns if content.labels else "texts"
        note = f"{counts['train']:,} to train, {counts['test']:,} to test"
        found.append(Tile(title.capitalize(), f"{counts.total():,}", note))
    if time := _time(content):
        found.append(time)
    if content.model_bytes:
        found.append(
            Tile("Size of the model", words.size(content.model_bytes), _server(content.check))
        )
    # A narrow tile breaks `1 min 53 s` between its units, and not behind 53.
    return [
        tile._replace(value=re.sub(r"(\d) (\D)", "\\1\N{NO-BREAK SPACE}\\2", tile.value))
        for tile in found
    ]


def _of_evaluation(results: Results, baseline: str) -> list[Tile]:
    own, base = results.candidate, results.baseline
    if not own.examples:
        return []
    value = ACCURACY.value(own)
    interval = ACCURACY.interval(own)
    assert interval is not None
    tiles = [
        Tile("Accuracy", f"{value:.4f}", f"95 % interval {interval[0]:.4f} – {interval[1]:.4f}"),
        Tile(
            "vs. constant answer",
            words.difference(value - constant_share(own)),
            constant_answer(own, results.labels),
        ),
    ]
    if base is not None:
        before = ACCURACY.value(base)
        name = baseline or "the served model"
        note = f"{name} has {before:.4f} on the same test {results.labels.nouns}"
        tiles.append(Tile("vs. served model", words.difference(value - before), note))
    else:
        note = "it has other classes" if results.other_classes else "no other model was served"
        tiles.append(Tile("vs. served model", "–", note))
    return tiles


def _time(content: Content) -> Tile | None:
    training = content.training
    trained = speed = ""
    if training:
        trained = words.duration(training.seconds)
        speed = f"{training.measured.examples_per_second:,.0f} texts a second"
    if content.run.steps:
        # The time of a cached training is not a part of this run.
        cached = any(step.name == TRAINER and step.state == "cached" for step in content.run.steps)
        which = "training in an earlier run" if cached else "training"
        note = f"{which} {trained}, {speed}" if trained else ""
        return Tile("Time of the run", words.duration(content.run.seconds), note)
    return Tile("Time of the training", trained, speed) if trained else None


def _server(check: CheckResults | None) -> str:
    results = check.results if check else ()
    memory = next((result for result in results if result.name == "memory_mb"), None)
    return f"its server uses {memory.value:,.0f} {memory.unit}" if memory else ""
