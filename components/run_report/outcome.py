"""The outcome of a finished run, for the commands and ML Metadata. It imports no TFX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from components.line_counts import LineCounts
from components.run_report.verdict import Decision, Verdict, judge
from core.records import known_fields


@dataclass(frozen=True)
class Outcome:
    """The outcome of a run that finished, whether or not its model was blessed.

    Attributes:
      lines: the counts of the lines of the input.
      reading: the format, the columns and the scale of the files, in a few lines.
      accuracy, auc: metrics of the candidate on the whole test split; NaN if they are undefined.
      constant_answer: the accuracy of a constant answer on the test split, as a clause.
      baseline: the name of the model that the candidate was compared with; empty if there was none.
      accuracy_change: the accuracy minus the accuracy of the baseline; 0 if there was no baseline.
      blessed: whether the Evaluator blessed the model.
      refused: the reason why the model failed the serving check; empty if it passed.
      not_checked: the checks that the serving check skipped, and the reason; empty if none was.
      pushed_to: the folder or the endpoint of the pushed model; empty if no model was pushed.
      report: the file of the report.
      class_lines: lines about the classes and the labels that are left out; none for sentiment.
      unused: a line for each of the first files without a usable line.
      strategy: the class of the strategy of the training; empty if it is unknown.
      metrics: title -> value of each of the `key_figures` of the candidate.
      accuracy_interval: the ends of the 95 % confidence interval of the accuracy; None if they are
        unknown.
      other_classes: a clause with the classes of the served model and of the candidate, if they are
        not compared because these differ; else empty.
      class_count: the number of classes.
      thresholds: the thresholds that decided, see `Decision`; None if they are unknown.
      loss_curve: the mean loss of equal parts of the training, in their order; empty if it is
        unknown.
      steps: the number of steps of the training; 0 if it is unknown.
      skipped_warm_start: the reason why the training did not continue from the weights of the
        served model, as a clause; empty if it did, or if it should not.
      drift: a sentence: how the newest span differs from that of the served model, or why they were
        not compared; empty without spans or without a served model.
      severity: the severity of its alarm, `none`, `low` or `high`; empty if they were not compared.
      not_tested: a sentence about the classes that the test split lacks; empty if it has all.
      served_as: the version that is served with the model of this run, although the run did not
        push it; empty if there is none.
      settings_note: a clause with the settings that the texts require, without which a model is
        worse; empty if there are none, or if the model is good.

    Early records lack the attributes with a default.
    """

    lines: LineCounts
    reading: Sequence[str]
    accuracy: float
    auc: float
    constant_answer: str
    baseline: str
    accuracy_change: float
    blessed: bool
    refused: str
    not_checked: str
    pushed_to: str
    report: str
    class_lines: Sequence[str] = ()
    unused: Sequence[str] = ()
    strategy: str = ""
    metrics: Mapping[str, float] = field(default_factory=dict)
    accuracy_interval: tuple[float, float] | None = None
    other_classes: str = ""
    not_tested: str = ""
    class_count: int = 2
    thresholds: Sequence[str] | None = None
    loss_curve: Sequence[float] = ()
    steps: int = 0
    skipped_warm_start: str = ""
    drift: str = ""
    severity: str = ""
    served_as: str = ""
    settings_note: str = ""

    @property
    def decision(self) -> Decision:
        """What decided about the model."""
        return Decision(self.blessed, self.thresholds, self.refused, bool(self.pushed_to))

    @property
    def verdict(self) -> Verdict:
        """The verdict on the model."""
        return judge(self.decision)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Outcome:
        """Return the outcome that `to_json` converted.

        Args:
          stored: the result of `to_json`, of any version. Unknown keys are ignored.

        Raises:
          ValueError: a key is missing, or the record is not an object.
        """
        try:
            known = known_fields(cls, stored)
            values = {name: _as_tuple(value) for name, value in known.items()}
            # Early records have only the thresholds that the model did not reach, as `reasons`.
            values.setdefault("thresholds", _as_tuple(stored.get("reasons")) or None)
            values["lines"] = LineCounts.from_properties(stored["lines"])
            return cls(**values)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"the outcome of a run is incomplete: {error}") from None

    def to_json(self) -> dict[str, Any]:
        """Return name of an attribute -> value, in a form that JSON can represent."""
        return {**vars(self), "lines": self.lines.to_properties()}


def _as_tuple(value: Any) -> Any:
    # JSON has no tuples.
    return tuple(value) if isinstance(value, list) else value
