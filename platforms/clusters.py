"""The clusters, the files of their compiled pipelines, and the interfaces of their modules.

This module imports nothing that is slow.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    from pipeline.config import PipelineConfig
    from platforms.follow import Run

ClusterTarget = Literal["vertex", "kubeflow"]
"""The platforms that run a compiled pipeline."""


class CompiledFile(NamedTuple):
    """The file of a compiled pipeline.

    Attributes:
      suffix: the end of its name.
      begins: the beginning of its content.
    """

    suffix: str
    begins: str


COMPILED_FILES: Mapping[ClusterTarget, CompiledFile] = {
    "vertex": CompiledFile(".json", '{\n  "displayName": '),
    "kubeflow": CompiledFile(".yaml", "components:\n"),
}
"""Target -> the file that `platforms.compile` writes."""


def cluster_name(config: PipelineConfig) -> str:
    """Return the pipeline's name with dashes, for a cluster that allows no underscores."""
    return config.name.replace("_", "-")


class Client(Protocol):
    """The module `client` of a cluster."""

    def check_access(self, config: PipelineConfig) -> None:
        """Check the access to the cluster, as far as this is possible before a submission.

        Raises:
          ConfigError: a setting is missing or wrong, or there are no valid credentials.
        """

    def start(
        self, config: PipelineConfig, package: Path, values: dict[str, Any], name: str
    ) -> Run:
        """Submit a compiled pipeline; return when the cluster has accepted the run.

        Args:
          config: the settings of the pipeline.
          package: the file of the compiled pipeline.
          values: parameter of the run -> value.
          name: the name of the run, of at most 128 characters.

        Raises:
          ConfigError, InputError: a setting is wrong, or the cluster is unreachable or denies
            access.
          ServerError: the cluster refused the run or did not respond. In the last case the run was
            perhaps submitted.
          Interrupted: Ctrl-C before the response. The run was perhaps submitted.
        """


class ScheduleTime(NamedTuple):
    """The time of a schedule in the parameters of its runs.

    Attributes:
      placeholder: what the cluster replaces by the time in each run.
      example: such a time, with which the parameters are checked.
    """

    placeholder: str
    example: str


class Schedules(Protocol):
    """The schedules of a pipeline on one cluster. Their names are not unique there.

    Attributes:
      replaced: the form of the placeholders in parameters that the cluster replaces in each run.
      time: the placeholder of the schedule's time.
    """

    replaced: re.Pattern[str]
    time: ScheduleTime

    def find(self, name: str) -> list[str]:
        """Return the ids of the schedules with a name."""

    def create(self, package: Path, values: dict[str, Any], name: str, cron: str) -> str:
        """Create a schedule of a compiled pipeline; return the URL of its page.

        Args:
          package: the file of the compiled pipeline.
          values: parameter of each run -> value.
          name: the name of the schedule.
          cron: a cron expression with five fields, in UTC.

        Raises:
          UserError: the cluster refused the schedule or did not respond.
        """

    def remove(self, schedule: str) -> str:
        """Remove the schedule with an id; return an empty string.

        If the removal would end a run in progress, stop the schedule instead, and return the name
        of the run.
        """
