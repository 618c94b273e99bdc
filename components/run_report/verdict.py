"""The verdict on a run: one sentence with the figure that decided it. It imports no TFX."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

LOGGED = "Verdict: "
"""The beginning of the message with the verdict in the log of a RunReport on a cluster. The
submission of a run reads it there."""
UNFINISHED = "unfinished"
"""The result of a run that did not decide, such as one that was killed."""


@dataclass(frozen=True)
class Decision:
    """The facts that decide what became of the model of a run.

    Attributes:
      blessed: whether the Evaluator blessed the model; None if it did not decide.
      thresholds: the sentences of `gates.deciding`; empty if no threshold is set, None if they are
        unknown.
      refused: the reason why the model failed the serving check; empty if it passed.
      pushed: whether the model was pushed.
      error: the error of the run; empty if it did not fail.
    """

    blessed: bool | None
    thresholds: Sequence[str] | None = None
    refused: str = ""
    pushed: bool = False
    error: str = ""

    @property
    def result(self) -> str:
        """What became of the model in one or two words, such as `not blessed`."""
        if self.error:
            return "failed"
        if self.blessed is None:
            return UNFINISHED
        if not self.blessed:
            return "not blessed"
        if self.refused:
            return "refused"
        return "pushed" if self.pushed else "blessed"


class Verdict(NamedTuple):
    """The verdict on a run.

    Attributes:
      headline: what became of the model, as a sentence without a full stop.
      reason: the clause that decided it, with its figure; empty if there is none.
      is_good: whether the model was blessed and not refused; None if the run did not decide.
    """

    headline: str
    reason: str
    is_good: bool | None

    @property
    def sentence(self) -> str:
        """The headline and the reason as one sentence."""
        if not self.reason:
            return f"{self.headline}."
        return f"{self.headline}: {self.reason.rstrip('.')}."

    @property
    def explanation(self) -> str:
        """The reason as a sentence of its own; empty without one."""
        if not self.reason:
            return ""
        return f"{self.reason[0].upper()}{self.reason[1:].rstrip('.')}."


def judge(decision: Decision) -> Verdict:
    """Return the verdict on a run, such as "The model was pushed: accuracy is 0.9669, …".

    Args:
      decision: the facts.
    """
    if decision.error:
        return Verdict("The run failed", decision.error, False)
    if decision.blessed is None:
        return Verdict("The run did not evaluate a model", "", None)
    if decision.thresholds is None:
        thresholds = ""
    else:
        thresholds = "; ".join(decision.thresholds) or "no threshold is set"
    if not decision.blessed:
        return Verdict("The model is not blessed and was not pushed", thresholds, False)
    if decision.refused:
        headline = "The model is blessed, but failed the serving check and was not pushed"
        return Verdict(headline, decision.refused, False)
    if decision.pushed:
        return Verdict("The model is blessed and was pushed", thresholds, True)
    return Verdict("The model is blessed and was not pushed", thresholds, True)
