"""The inputs of a report: the artifacts of one run, as far as they exist."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any, NamedTuple

NODE_ID = "RunReport"
"""Id of the node that writes the report of a run."""
_LIBRARIES = ("tfx", "tensorflow", "tf_keras", "apache-beam", "tensorflow-transform")


class Step(NamedTuple):
    """One component of a run.

    Attributes:
      name: id of the node.
      state: `done`, `cached`, `failed` or `unfinished`.
      started: seconds since the start of the run.
      seconds: duration.
    """

    name: str
    state: str
    started: float
    seconds: float


@dataclass(frozen=True)
class Sources:
    """The run that a report describes. A failed run lacks the artifacts of later components.

    Attributes:
      name: name of the pipeline.
      run_id: id of the run.
      started: seconds since 1970; None if it is unknown.
      settings: the settings of the run, section -> key -> value; empty if they are unknown.
      versions: library -> version, of the run; empty if they are unknown.
      steps: the components, in the order in which they ran; empty if ML Metadata is not accessible.
      failure: the error of a failed run in one line; empty if no component failed.
      rejected, statistics, anomalies, examples, model, model_run, evaluation, check: URIs of the
        artifacts; None if they are missing.
      blessed: whether the Evaluator blessed the model; None if it did not decide.
      baseline: the name of the model that the candidate was compared with; empty if there was none.
      pushed_to: folder of the pushed model; empty if no model was pushed.
    """

    name: str
    run_id: str
    started: float | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    steps: Sequence[Step] = ()
    failure: str = ""
    rejected: str | None = None
    statistics: str | None = None
    anomalies: str | None = None
    examples: str | None = None
    model: str | None = None
    model_run: str | None = None
    evaluation: str | None = None
    check: str | None = None
    blessed: bool | None = None
    baseline: str = ""
    pushed_to: str = ""


def installed_versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries that a result depends on."""
    return {
        "python": platform.python_version(),
        **{name: metadata.version(name) for name in _LIBRARIES},
    }
