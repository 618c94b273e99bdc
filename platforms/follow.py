"""A run on either cluster: its states, its errors, and the loop that follows it to its end."""

from __future__ import annotations

import abc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from core import exit_codes
from core.errors import ServerError, UserError

Report = Callable[[str], None]
"""A function that gets one line for the user at a time."""

POLL_SECONDS = 10.0
PATIENCE_SECONDS = 600.0
"""Seconds without a response from the cluster after which `follow` ends."""

SUCCESS_STATES = ("SUCCEEDED", "SKIPPED")
ENDS = (*SUCCESS_STATES, "FAILED", "CANCELED", "CANCELLED")


class SubmitError(ServerError):
    """A request that the cluster refused; the message is one line."""

    def __init__(self, message: str):
        super().__init__(one_line(message))


class NoResponse(SubmitError):
    """A request without a response; a retry may succeed."""


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


@dataclass(frozen=True)
class Run(abc.ABC):
    """A submitted run.

    Attributes:
      name: its name.
      tasks: the ids of the pipeline's nodes.
      link: its web page.
      logs: the command or page with the logs of its failed tasks.
    """

    name: str
    tasks: Sequence[str]
    link: str
    logs: str

    @abc.abstractmethod
    def status(self) -> Status:
        """Request the status from the cluster.

        Raises:
          NoResponse: the request failed, and a retry may succeed.
          UserError: the request failed, and a retry does not help.
        """

    def last_errors(self) -> list[str]:
        """Request a line for each failed task, if the status has no errors; else return none."""
        return []


def follow(run: Run, report: Report) -> int:
    """Report each change of the states of the run and its tasks until the run ends.

    Returns:
      An exit code, see `platforms.submission.submit`.
    """
    seen: dict[str, str] = {}
    started = responded = time.monotonic()
    continues = f"the run continues, see or stop it at {run.link}"
    retrying = False
    try:
        while True:
            try:
                status = run.status()
            except NoResponse as error:
                if time.monotonic() - responded > PATIENCE_SECONDS:
                    report(f"no response for {PATIENCE_SECONDS:g} s ({error}); {continues}")
                    return exit_codes.FAILED
                if not retrying:
                    report(f"no response ({error}); retrying")
                retrying = True
            except UserError as error:
                report(f"the status cannot be read ({error}); {continues}")
                return exit_codes.FAILED
            else:
                responded, retrying = time.monotonic(), False
                tasks = _own_tasks(status, run.tasks)
                for task in (*tasks, Task(run.name, status.state)):
                    known = task.state and not task.state.endswith("UNSPECIFIED")
                    if known and seen.get(task.name) != task.state:
                        seen[task.name] = task.state
                        words = task.state.lower().replace("_", " ")
                        report(f"{time.strftime('%H:%M:%S')}  {task.name}: {words}")
                if status.state in SUCCESS_STATES:
                    minutes, seconds = divmod(int(time.monotonic() - started), 60)
                    report(f"{run.name} succeeded after {minutes} min {seconds} s")
                    return exit_codes.PUSHED
                if status.state in ENDS:
                    _report_failure(run, status, tasks, report)
                    return exit_codes.FAILED
            time.sleep(POLL_SECONDS)
    except KeyboardInterrupt:
        report(f"interrupted; {continues}")
        return exit_codes.INTERRUPTED


def _report_failure(run: Run, status: Status, tasks: list[Task], report: Report) -> None:
    if status.state == "FAILED":
        failed = [task for task in tasks if task.state == "FAILED"]
        for each in failed or [Task(run.name, status.state, status.error)]:
            report(
                f"{each.name} failed: {one_line(each.error) or 'no error message from the cluster'}"
            )
        for line in run.last_errors():
            report(one_line(line))
    else:  # The tasks that a cancellation ends are FAILED too.
        report(f"{run.name} was cancelled")
    report(f"logs: {run.logs}")


def _own_tasks(status: Status, names: Sequence[str]) -> list[Task]:
    """Return the tasks of the pipeline, under the ids of its nodes.

    Kubeflow also lists the driver of each task, its pod and the graph; Vertex AI lists the graph.
    Only a failed driver is of interest, because its task never started.
    """

    def normalized(name: str) -> str:
        return name.lower().replace("_", "-")

    names_by_key = {normalized(name): name for name in names}
    names_by_key |= {f"{key}-driver": f"{name} (its driver)" for key, name in names_by_key.items()}
    own = {}
    for task in status.tasks:
        name = names_by_key.get(normalized(task.name), "")
        if name in names or (name and task.state == "FAILED"):
            own[name] = Task(name, task.state, task.error)
    return list(own.values())


def possibly_submitted(error: NoResponse, name: str, link: str) -> SubmitError:
    """Return the error of a submission without a response, which the cluster may have accepted."""
    return SubmitError(
        f"{error}; it is unknown whether {name} was submitted, check {link} before a retry"
    )


def one_line(text: str) -> str:
    """Return `text` without line breaks, shortened to 500 characters."""
    line = " ".join(text.split())
    return line if len(line) <= 500 else line[:499] + "…"
