"""The states and errors of a run on either cluster, and the loop that follows it to its end."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import urllib3

from core import exit_codes
from core.errors import ServerError

Report = Callable[[str], None]
"""A function that gets one line for the user at a time."""

POLL_SECONDS = 10.0
PATIENCE_SECONDS = 600.0
"""Seconds without a response from the cluster after which `follow` ends."""

SUCCESS_STATES = ("SUCCEEDED", "SKIPPED")
FAILURE_STATES = ("FAILED", "CANCELED", "CANCELLED")
ENDS = SUCCESS_STATES + FAILURE_STATES


_NO_MESSAGE = "no error message from the cluster"


class SubmitError(ServerError):
    """A failed submission, or an invalid response of the cluster; the message is one line."""

    def __init__(self, message: str):
        super().__init__(one_line(message))


class NoResponse(SubmitError):
    """A request without a response; a retry may succeed.

    Attributes:
      sent: True if the cluster may have received the request.
    """

    def __init__(self, message: str, sent: bool = True):
        super().__init__(message)
        self.sent = sent


@dataclass(frozen=True)
class Task:
    """A task of a run; `state` is the API's state without its prefix, such as `FAILED`."""

    name: str
    state: str
    error: str = ""


@dataclass(frozen=True)
class Status:
    """The state of a run at one moment; `tasks` may include tasks that the engine added."""

    state: str
    tasks: tuple[Task, ...] = ()
    error: str = ""


class Run(Protocol):
    """A submitted run."""

    @property
    def name(self) -> str: ...

    @property
    def link(self) -> str:
        """The web page of the run."""

    @property
    def logs(self) -> str:
        """The command or web page that shows the logs of its failed tasks."""

    def last_errors(self) -> list[str]:
        """Request a line for each failed task, if the status has no errors; else return none."""

    def status(self) -> Status:
        """Request the status from the cluster.

        Raises:
          NoResponse: the request failed, and a retry may succeed.
          SubmitError: the request failed, and a retry does not help.
        """


def follow(
    run: Run,
    task_names: Sequence[str],
    report: Report,
    poll_seconds: float = POLL_SECONDS,
    patience_seconds: float = PATIENCE_SECONDS,
) -> int:
    """Report each change of the states of the run and its tasks until the run ends.

    Args:
      run: the run.
      task_names: the ids of the pipeline's nodes.
      report: gets one line at a time.
      poll_seconds: seconds between two requests of the status.
      patience_seconds: seconds without a response after which this function returns.

    Returns:
      An exit code, see `platforms.submission.submit`.
    """
    seen: dict[str, str] = {}
    started = responded = time.monotonic()
    retrying = False
    try:
        while True:
            try:
                status = run.status()
            except NoResponse as error:
                if time.monotonic() - responded > patience_seconds:
                    report(f"no response for {patience_seconds:g} s ({error}); {_continues(run)}")
                    return exit_codes.FAILED
                if not retrying:
                    report(f"no response ({error}); retrying")
                retrying = True
            except SubmitError as error:
                report(f"the status cannot be read ({error}); {_continues(run)}")
                return exit_codes.FAILED
            else:
                responded, retrying = time.monotonic(), False
                tasks = _own_tasks(status, task_names)
                for task in (*tasks, Task(run.name, status.state)):
                    known = task.state and not task.state.endswith("UNSPECIFIED")
                    if known and seen.get(task.name) != task.state:
                        seen[task.name] = task.state
                        words = task.state.lower().replace("_", " ")
                        report(f"{time.strftime('%H:%M:%S')}  {task.name}: {words}")
                if status.state in ENDS:
                    return _end(run, status, tasks, time.monotonic() - started, report)
            time.sleep(poll_seconds)
    except KeyboardInterrupt:
        report(f"interrupted; {_continues(run)}")
        return exit_codes.INTERRUPTED


def _continues(run: Run) -> str:
    return f"the run continues, see or stop it at {run.link}"


def _end(run: Run, status: Status, tasks: list[Task], seconds: float, report: Report) -> int:
    if status.state in SUCCESS_STATES:
        report(f"{run.name} succeeded after {int(seconds) // 60} min {int(seconds) % 60} s")
        return exit_codes.PUSHED
    # The tasks that a cancellation ends are FAILED too.
    failed = [task for task in tasks if status.state == "FAILED" and task.state == "FAILED"]
    for task in failed:
        report(f"{task.name} failed: {one_line(task.error) or _NO_MESSAGE}")
    if status.state != "FAILED":
        report(f"{run.name} was cancelled")
    else:
        if not failed:
            report(f"{run.name} failed: {one_line(status.error) or _NO_MESSAGE}")
        for line in run.last_errors():
            report(one_line(line))
    report(f"logs: {run.logs}")
    return exit_codes.FAILED


def _own_tasks(status: Status, names: Sequence[str]) -> list[Task]:
    """Return the tasks of the pipeline, under the ids of its nodes.

    Kubeflow also lists the driver of each task, its pod and the graph; Vertex AI lists the graph.
    Only a failed driver is of interest, because its task never started.
    """
    node_ids = {_normalized(name): name for name in names}
    own: dict[str, Task] = {}
    for task in status.tasks:
        normalized = _normalized(task.name)
        driven = node_ids.get(normalized.removesuffix("-driver"))
        if normalized in node_ids:
            name = node_ids[normalized]
        elif driven and task.state == "FAILED":
            name = f"{driven} (its driver)"
        else:
            continue
        own[name] = Task(name, task.state, task.error)
    return list(own.values())


def _normalized(name: str) -> str:
    return name.lower().replace("_", "-")


def no_response(error: Exception) -> NoResponse:
    """Convert an exception of urllib3 to a NoResponse with a readable message."""
    cause = getattr(error, "reason", None) or error
    never_sent = isinstance(
        cause,
        urllib3.exceptions.NewConnectionError
        | urllib3.exceptions.ConnectTimeoutError
        | urllib3.exceptions.SSLError,
    )
    # The message of urllib3 starts with the repr of the connection.
    text = re.sub(r"^(<.*?>|\w+\(.*?\)): ", "", str(cause))
    return NoResponse(text, sent=not never_sent)


def possibly_submitted(error: NoResponse, name: str, link: str) -> SubmitError:
    """Return the error of a submission without a response, which the cluster may have accepted."""
    return SubmitError(
        f"{error}; it is unknown whether {name} was submitted, check {link} before a retry"
    )


def one_line(text: str, longest: int = 500) -> str:
    """Return `text` without line breaks, shortened to `longest` characters."""
    line = " ".join(text.split())
    return line if len(line) <= longest else line[: longest - 1] + "…"
