"""What changed between two runs, as one value for the report and for `runs compare`.

A command that needs no evaluation imports neither TensorFlow nor TFX, whose import takes seconds.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from absl import logging

from components.line_counts import SPLITS, LineCounts
from components.run_report.earlier import is_baseline
from components.run_report.history import DESCRIBED, Run, recorded_counts, recorded_decision
from core.settings import flat_settings
from preprocessing.labels import Labels

if TYPE_CHECKING:
    from components.evaluator.files import Changed, Results
    from components.evaluator.metrics import Metric

UNKNOWN = "–"
"""The text in place of a value that is missing or unknown."""
_CHANCE = 0.05
"""Probability below which a difference is not called chance."""
_DATA = "data."
"""The beginning of the settings that decide which reviews are in the test split."""
_PLACES = "paths."
"""The beginning of the settings that affect no result, as the name of the pipeline does not."""


class Difference(NamedTuple):
    """A value that differs between two runs: its name, and the value of each as text."""

    name: str
    before: str
    after: str


class MetricChange(NamedTuple):
    """A metric of two models. A value is NaN if it is unknown or not defined."""

    title: str
    before: float
    after: float


@dataclass(frozen=True)
class Changes:
    """What changed between two runs.

    Attributes:
      before: the name of the earlier run or of its model.
      after: the name of the later run or of its model.
      unknown: the reason why settings, data, code and seconds are not compared; empty if they are.
      settings: the settings that differ.
      data: the counts of the lines that differ, and whether the files do.
      code: the versions of libraries that differ, and a row for the components with other code.
      metrics: the key figures of both models, also those that are equal.
      same_reviews: whether both models answered the same test reviews, so that their metrics can be
        compared exactly.
      answers: the reviews that exactly one of the models gets right; None if they are unknown.
      results: how both runs ended, and the seconds of their components.
      labels: the classes; None if they are unknown.
    """

    before: str
    after: str
    unknown: str = ""
    settings: Sequence[Difference] = ()
    data: Sequence[Difference] = ()
    code: Sequence[Difference] = ()
    metrics: Sequence[MetricChange] = ()
    same_reviews: bool = False
    answers: Changed | None = None
    results: Sequence[Difference] = ()
    labels: Labels | None = None

    @property
    def noun(self) -> str:
        """The word for a text, see `Labels.noun`."""
        return self.labels.noun if self.labels else "text"

    @property
    def groups(self) -> dict[str, Sequence[Difference]]:
        """Title -> differences, for the kinds that a person can change; empty if unknown."""
        if self.unknown:
            return {}
        return {"Settings": self.settings, "Data": self.data, "Code": self.code}

    @property
    def unchanged(self) -> str:
        """A sentence with the kinds of `groups` that do not differ; empty without any."""
        same = [title.lower() for title, found in self.groups.items() if not found]
        return f"Unchanged: {', '.join(same)}." if same else ""

    @property
    def answers_sentence(self) -> str:
        """A sentence about the reviews that one of the models gets right; empty if unknown."""
        if self.answers is None:
            return ""
        wrong, right, _ = self.answers
        if not wrong + right:
            return f"Both models get the same test {self.noun}s right."
        from scipy.stats import binomtest

        one = f"{self.noun}s" if wrong != 1 else self.noun
        probability = binomtest(min(wrong, right), wrong + right).pvalue
        if probability < _CHANCE:
            chance = "Chance alone seldom makes such a difference"
        else:
            chance = "Chance alone often makes such a difference"
        after = f"{self.after[0].upper()}{self.after[1:]}"
        return (
            f"{after} gets {wrong:,} test {one} wrong that {self.before} got right, and "
            f"{right:,} right that {self.before} got wrong. {chance} "
            f"(sign test, p {_p_value(probability)})."
        )


def what_changed(
    before: Run | None,
    after: Run,
    results: Results | None = None,
    answers: Changed | None = None,
    names: tuple[str, str] | None = None,
    recorded: bool = True,
) -> Changes:
    """Return what changed between two runs.

    Args:
      before: the earlier run; None if no record of it is known.
      after: the later run.
      results: the evaluation of `after`, whose baseline is the model of `before`; None if it has
        another baseline. Then the recorded metrics of both runs are compared.
      answers: the content of `files.read_changed` of the same evaluation.
      names: the names of both runs or models; None: the ids of the runs.
      recorded: whether there is a record of earlier runs, in which `before` was searched.
    """
    first, second = names or (_run_name(before), _run_name(after))
    compared = results if results and results.baseline else None
    changes = Changes(
        before=first,
        after=second,
        metrics=_evaluated(compared) if compared else _recorded(before, after),
        same_reviews=compared is not None,
        answers=answers,
        labels=results.labels if results else None,
    )
    if before is None:
        reason = "a run on a cluster has no record of earlier runs"
        if recorded:
            reason = "no run in paths.metadata has pushed it"
        unknown = f"The settings of {first} are unknown, because {reason}."
        return replace(changes, unknown=unknown)
    if not before.settings:
        return replace(changes, unknown=f"The settings of {first} were not recorded.")
    settings = [
        each
        for each in _differences(flat_settings(before.settings), flat_settings(after.settings))
        if each.name != "name" and not each.name.startswith(_PLACES)
    ]
    return replace(
        changes,
        same_reviews=changes.same_reviews or _has_same_test_split(before, after, settings),
        settings=settings,
        data=list(_data(before, after)),
        code=list(_code(before, after)),
        results=list(_results(before, after)),
    )


def compare_runs(before: Run, after: Run) -> Changes:
    """Return what changed between two recorded runs.

    If the model of `before` was the baseline of `after`, the metrics are those of the evaluation of
    `after`, in which both models answered the same reviews.

    Args:
      before: the earlier run.
      after: the later run.
    """
    evaluation = after.uris.get("evaluation")
    if evaluation is None or not is_baseline(before, after):
        return what_changed(before, after)
    from components.evaluator import files

    try:
        results, answers = files.read(evaluation), files.read_changed(evaluation)
    except Exception as error:
        # The libraries that read a damaged or deleted artifact raise many kinds of errors.
        logging.warning("The evaluation of the run %s cannot be read: %s", after.id, error)
        return what_changed(before, after)
    return what_changed(before, after, results, answers)


def _line_counts(run: Run) -> LineCounts | None:
    """Return the counts of the lines of the input of a run; None if they are unknown."""
    if run.outcome:
        return run.outcome.lines
    rejected = DESCRIBED["rejected"]
    artifact = run.outputs.get(rejected.node, {}).get(rejected.key)
    return recorded_counts(artifact) if artifact is not None else None


def _run_name(run: Run | None) -> str:
    # The microseconds of an id only make it longer.
    return f"run {run.id.partition('.')[0]}" if run else "an unknown run"


def _evaluated(results: Results) -> list[MetricChange]:
    """Return the key figures of baseline and candidate on the same reviews."""
    from components.evaluator.metrics import key_figures

    base = results.baseline
    assert base is not None

    def change(metric: Metric) -> MetricChange:
        return MetricChange(metric.title, metric.value(base), metric.value(results.candidate))

    return [change(metric) for metric in key_figures(results.labels)]


def _recorded(before: Run | None, after: Run) -> list[MetricChange]:
    """Return the key figures of two runs, each on its own test split."""
    one, other = (run.outcome.metrics if run and run.outcome else {} for run in (before, after))
    titles = dict.fromkeys([*one, *other])
    return [
        MetricChange(title, one.get(title, math.nan), other.get(title, math.nan))
        for title in titles
    ]


def _has_same_test_split(before: Run, after: Run, settings: Sequence[Difference]) -> bool:
    """Return whether two runs certainly have the same test reviews."""
    prints = {before.input_fingerprint, after.input_fingerprint}
    codes = {run.code.get(DESCRIBED["rejected"].node) for run in (before, after)}
    are_read_alike = not any(each.name.startswith(_DATA) for each in settings)
    return are_read_alike and len(prints) == len(codes) == 1 and "" not in prints


def _data(before: Run, after: Run) -> Iterator[Difference]:
    one, other = _line_counts(before), _line_counts(after)
    if one and other:
        yield from _differences(_counted(one), _counted(other))
    prints = [run.input_fingerprint for run in (before, after)]
    if all(prints) and prints[0] != prints[1]:
        yield Difference("content of the files", "other files", "these files")


def _counted(lines: LineCounts) -> dict[str, str]:
    rejected = lines.rejected.total()
    numbers = {
        "lines read": lines.lines,
        **{f"{split} split": lines.examples[split] for split in SPLITS},
        "left out by label": lines.neutral,
        "over data.max_examples": lines.over_max_examples,
        "duplicate or rejected": rejected,
        "bytes that cannot be read": lines.lost_bytes,
    }
    return {name: f"{number:,}" for name, number in numbers.items()}


def _code(before: Run, after: Run) -> Iterator[Difference]:
    yield from _differences(before.versions, after.versions)
    both = before.code.keys() & after.code.keys()
    changed = [
        name for name in after.code if name in both and before.code[name] != after.code[name]
    ]
    if changed:
        yield Difference("components", "earlier code", f"other code: {', '.join(changed)}")


def _results(before: Run, after: Run) -> Iterator[Difference]:
    runs = (before, after)
    yield Difference("result", *(recorded_decision(run).result for run in runs))
    strategies = [run.outcome.strategy if run.outcome else "" for run in runs]
    yield Difference("strategy", *(each or UNKNOWN for each in strategies))
    yield Difference("seconds", *(f"{run.seconds:.0f}" for run in runs))
    steps = [
        {each.name: f"{each.seconds:.1f} s, {each.state}" for each in run.steps} for run in runs
    ]
    for name in dict.fromkeys([*steps[0], *steps[1]]):
        yield Difference(name, *(each.get(name, UNKNOWN) for each in steps))


def _differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Difference]:
    return [
        Difference(key, _text(before, key), _text(after, key))
        for key in dict.fromkeys([*before, *after])
        if before.get(key) != after.get(key)
    ]


def _text(values: Mapping[str, Any], key: str) -> str:
    value = values.get(key)
    if value is None:
        return "none" if key in values else UNKNOWN
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _p_value(probability: float) -> str:
    return "below 0.001" if probability < 0.001 else f"{probability:.2g}"
