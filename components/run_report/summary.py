"""The first ten seconds of a report: the verdict, the thresholds and the tiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from components.evaluator.files import Results
from components.evaluator.metrics import ACCURACY, constant_answer, constant_share
from components.run_report import words
from components.run_report.content import Content
from components.run_report.history import UNFINISHED, describe_result


class Verdict(NamedTuple):
    """The verdict of a run.

    Attributes:
      kind: `good`, `bad` or `neutral`, a class of the style sheet.
      sentence: what happened.
      reason: the number that decided it, as a sentence; empty if none did.
    """

    kind: str
    sentence: str
    reason: str = ""


class Tile(NamedTuple):
    """A figure in large type: its title, the value, and a note."""

    title: str
    value: str
    note: str = ""


def result(content: Content) -> str:
    """Return the result of the run, see `history.describe_result`."""
    run, check = content.run, content.check
    refused = check is not None and not check["passed"]
    return describe_result(run.error, run.blessed, refused=refused, pushed=bool(run.pushed_to))


def verdict(content: Content) -> Verdict:
    """Return the verdict of a run, with the number that decided it."""
    run = content.run
    name = result(content)
    if name == "failed":
        return Verdict("bad", "The run failed.", run.error)
    if name == UNFINISHED:
        return Verdict("neutral", "The run did not evaluate a model.")
    if name == "not blessed":
        return Verdict("bad", "The model is not blessed, and was not pushed.", _missed(content))
    if name == "refused":
        assert content.check is not None
        sentence = "The model is blessed, but failed the serving check. It was not pushed."
        return Verdict("bad", sentence, _sentence(content.check.get("cause", "")))
    if name == "pushed":
        sentence = f"The model is blessed, and was pushed to {run.pushed_to}."
        return Verdict("good", sentence, _reached(content))
    return Verdict("neutral", "The model is blessed. It was not pushed.", _reached(content))


def tiles(content: Content) -> list[Tile]:
    """Return the tiles of a report: accuracy, comparisons, reviews, time and size."""
    found = []
    if content.evaluation:
        found += _of_evaluation(content.evaluation, content.run.baseline)
    if content.input:
        counts = content.input.total.examples
        title = f"{content.labels.noun}s" if content.labels else "texts"
        note = f"{counts['train']:,} to train, {counts['test']:,} to test"
        found.append(Tile(title.capitalize(), f"{counts.total():,}", note))
    if time := _time(content):
        found.append(time)
    if content.model_bytes:
        found.append(
            Tile("Size of the model", words.size(content.model_bytes), _server(content.check))
        )
    return found


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
        note = f"{name} has {before:.4f} on the same test {results.labels.noun}s"
        tiles.append(Tile("vs. served model", words.difference(value - before), note))
    else:
        note = "it has other classes" if results.not_compared else "no other model was served"
        tiles.append(Tile("vs. served model", "–", note))
    return tiles


def _time(content: Content) -> Tile | None:
    training = content.training
    trained = speed = ""
    if "seconds" in training:
        trained = words.duration(training["seconds"])
        speed = f"{training['examples_per_second']:,.0f} texts a second"
    if content.run.steps:
        note = f"training {trained}, {speed}" if trained else ""
        return Tile("Time of the run", words.duration(content.run.seconds), note)
    return Tile("Time of the training", trained, speed) if trained else None


def _server(check: Mapping[str, Any] | None) -> str:
    memory = next((r for r in (check or {}).get("results", []) if r["name"] == "memory_mb"), None)
    return f"its server uses {memory['value']:,.0f} {memory['unit']}" if memory else ""


def _missed(content: Content) -> str:
    """Return the thresholds that the model did not reach, as a sentence."""
    checks = content.evaluation.checks() if content.evaluation else []
    missed: Sequence[str] = [check.sentence for check in checks if not check.passed]
    if not missed:
        return ""
    more = f" ({len(missed) - 1} more below)" if len(missed) > 1 else ""
    return _sentence(missed[0] + more)


def _reached(content: Content) -> str:
    """Return the number with which the model reached the decisive threshold, as a sentence."""
    results = content.evaluation
    if results is None or not results.candidate.examples:
        return ""
    value = ACCURACY.value(results.candidate)
    settings = results.settings
    if results.baseline is not None:
        change = value - ACCURACY.value(results.baseline)
        direction = "below" if change < 0 else "above"
        allowed = f"; a drop of {settings.max_accuracy_drop:g} is allowed" if change < 0 else ""
        name = content.run.baseline or "the served model"
        return (
            f"Its accuracy of {value:.4f} is {abs(change):.4f} {direction} that of {name}{allowed}."
        )
    if settings.min_accuracy > 0:
        return f"Its accuracy is {value:.4f}; {settings.min_accuracy:g} is required."
    return f"Its accuracy is {value:.4f}; no minimum is set."


def _sentence(clause: str) -> str:
    """Return a clause as a sentence."""
    if not clause:
        return ""
    return f"{clause[0].upper()}{clause[1:]}".rstrip(".") + "."
