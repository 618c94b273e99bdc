"""Run a job without work.

Nothing in Beam's Job API is the version of a job server or of its Flink, so only a job shows that
it can use a cluster. The arguments are those of a Beam pipeline. The last line of the output is the
error; it is empty if the cluster ran the job, or accepted it and has no slot for it at present.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence

import apache_beam as beam
from apache_beam.options.pipeline_options import FlinkRunnerOptions, PipelineOptions
from apache_beam.runners.runner import PipelineResult

from core.errors import UserError
from core.flink import rest
from core.flink.runner import PREFIX, FlinkRunner

_SECONDS = 60
_SECONDS_BETWEEN = 0.5
_OWN_ARGUMENTS = (
    f"--flink_timeout_seconds={_SECONDS}",
    "--parallelism=1",
    # The job has no work for a Python worker, so none starts.
    "--environment_type=EXTERNAL",
    "--environment_config=localhost:1",
)


def problem(arguments: Sequence[str]) -> str:
    """Run the job; return why it cannot run, or an empty string."""
    options = PipelineOptions([*arguments, *_OWN_ARGUMENTS])
    pipeline = beam.Pipeline(runner=FlinkRunner(), options=options)
    _ = pipeline | beam.Impulse()
    master = options.view_as(FlinkRunnerOptions).flink_master
    try:
        _wait(pipeline.run(), master)
    except UserError as error:
        return str(error) if _state(master) in ("", "FAILED") else ""
    return ""


def _wait(result: PipelineResult, master: str) -> None:
    """Wait until Flink has run the job.

    Raises:
      UserError: the job server reports the end of the job first, or there is no progress.
    """
    errors: list[UserError] = []

    def wait_for_job_server() -> None:
        try:
            result.wait_until_finish()
        except UserError as error:
            errors.append(error)

    # The job server of Beam 2.62 fails after a job without metrics, and never reports its end.
    waiting = threading.Thread(target=wait_for_job_server, daemon=True)
    waiting.start()
    while waiting.is_alive() and _state(master) != "FINISHED":
        waiting.join(_SECONDS_BETWEEN)
    if errors:
        raise errors[0]


def _state(master: str) -> str:
    """Return the state of the job; empty if the cluster does not know it."""
    try:
        return next((job["state"] for job in rest.jobs(master, PREFIX)), "")
    except (OSError, ValueError, KeyError):
        return ""


if __name__ == "__main__":
    print(problem(sys.argv[1:]))
