"""A run on either cluster: its states, its errors, and the loop that follows it to its end."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from core import exit_codes
from core.errors import ServerError, UserError
from pipeline.nodes import REPORT

Report = Callable[[str], None]
"""A function that shows one line to the user."""

POLL_SECONDS = 10.0
"""Seconds between two requests for the status of a run."""
PATIENCE_SECONDS = 600.0
"""Seconds without a response from the cluster after which `follow` ends."""

SUCCESS_STATES = ("SUCCEEDED", "SKIPPED")
DELETED = "DELETED"
"""The state of a run that somebody has deleted, of which the API knows nothing."""
ENDS = (*SUCCESS_STATES, "FAILED", "CANCELED", "CANCELLED", DELETED)
"""The states of a run that has ended."""
_UNKNOWN_VERDICT = f"the report of the step {REPORT} shows whether the model was pushed"


class NoResponse(ServerError):
    """A request without a response; a retry may succeed."""


class Interrupted(UserError):
    """Ctrl-C before the response to a request that the cluster may carry out."""

    exit_code = exit_codes.INTERRUPTED


class Task(NamedTuple):
    """A task of a run.

    Attributes:
      name: the id of the task.
      state: the state in the API, without its prefix, such as `FAILED`; empty if it is unknown.
      error: the error message; empty without an error.
    """

    name: str
    state: str
    error: str = ""


class Status(NamedTuple):
    """The state of a run at one moment.

    Attributes:
      state: the state of the whole run, in the form of `Task.state`.
      tasks: the tasks of the pipeline, and perhaps others that the engine added.
      error: the error of the whole run; empty without an error.
      waits: the tasks that the cluster does not start, each with the reason.
      errors: the errors of failed tasks that the API does not contain.
      verdict: what became of the model of a run that has succeeded; empty if it is unknown.
    """

    state: str
    tasks: Sequence[Task] = ()
    error: str = ""
    waits: Sequence[str] = ()
    errors: Sequence[str] = ()
    verdict: str = ""


class Run(NamedTuple):
    """A submitted run.

    Attributes:
      name: the name of the run on the cluster.
      tasks: the ids of the pipeline's nodes.
      link: the URL of its web page.
      logs: the command or page with the logs of its failed tasks.
      status: requests the status from the cluster. It raises NoResponse if a retry may succeed, and
        another UserError if not.
    """

    name: str
    tasks: Sequence[str]
    link: str
    logs: str
    status: Callable[[], Status]


def follow(run: Run, report: Report) -> int:
    """Report each change of the states of the run and its tasks until the run ends.

    Args:
      run: the run.
      report: called with each line.

    Returns:
      An exit code, see `platforms.submission.submit`.
    """
    continues = f"the run continues, see or stop it at {run.link}"
    seen: dict[str, str] = {}
    started = responded = time.monotonic()
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
                for line in _changes(run, status, tasks, seen):
                    report(f"{time.strftime('%H:%M:%S')}  {line}")
                if status.state in SUCCESS_STATES:
                    minutes, seconds = divmod(int(time.monotonic() - started), 60)
                    report(f"{run.name} succeeded after {minutes} min {seconds} s")
                    # A run also succeeds if its model is not blessed.
                    verdict = status.verdict or _UNKNOWN_VERDICT
                    report(textwrap.shorten(verdict, 500, placeholder="…"))
                    return exit_codes.PUSHED
                if status.state in ENDS:
                    _report_failure(run, status, tasks, report)
                    return exit_codes.FAILED
            time.sleep(POLL_SECONDS)
    except KeyboardInterrupt:
        report(f"interrupted; {continues}")
        return exit_codes.INTERRUPTED


def _changes(run: Run, status: Status, tasks: list[Task], seen: dict[str, str]) -> Iterator[str]:
    """Yield a line for each change since the last status.

    Args:
      run: the run.
      status: its status.
      tasks: the tasks of the pipeline in the status.
      seen: the name of a task or of the run -> its last state, and each wait that was yielded. This
        function changes it.
    """
    for task in (*tasks, Task(run.name, status.state)):
        known = task.state and not task.state.endswith("UNSPECIFIED")
        if known and seen.get(task.name) != task.state:
            seen[task.name] = task.state
            yield f"{task.name}: {task.state.lower().replace('_', ' ')}"
    # The reasons of a task may alternate, such as ErrImagePull and ImagePullBackOff.
    for wait in status.waits:
        if wait not in seen:
            seen[wait] = ""
            yield textwrap.shorten(wait, 500, placeholder="…")


def _report_failure(run: Run, status: Status, tasks: list[Task], report: Report) -> None:
    if status.state == "FAILED":
        failed = [task for task in tasks if task.state == "FAILED"]
        for each in failed or [Task(run.name, status.state, status.error)]:
            error = textwrap.shorten(each.error, 500, placeholder="…")
            report(f"{each.name} failed: {error or 'no error message from the cluster'}")
        for line in status.errors:
            report(textwrap.shorten(line, 500, placeholder="…"))
    elif status.state == DELETED:
        # Kubernetes deletes the pods of the run together with it.
        report(f"{run.name} was deleted")
        return
    else:  # The tasks that a cancellation ends are FAILED too.
        report(f"{run.name} was cancelled")
    report(f"logs: {run.logs}")


def _own_tasks(status: Status, names: Sequence[str]) -> list[Task]:
    """Return the tasks of the pipeline, under the ids of its nodes.

    Kubeflow also lists the driver of each task, its pod and the graph; Vertex AI lists the graph.
    A driver is returned only if it failed, because its task has not started then.
    """
    names_by_key = {name.lower(): name for name in names}
    names_by_key |= {f"{key}-driver": f"{name} (its driver)" for key, name in names_by_key.items()}
    own = {}
    for task in status.tasks:
        name = names_by_key.get(task.name.lower(), "")
        if name in names or (name and task.state == "FAILED"):
            own[name] = Task(name, task.state, task.error)
    return list(own.values())


def possibly_submitted(
    error: NoResponse | KeyboardInterrupt, name: str, link: str
) -> ServerError | Interrupted:
    """Return the error of a submission without a response, which the cluster may have accepted.

    Args:
      error: the error of the request, or Ctrl-C before its response.
      name: the name of the run.
      link: the URL of the page that shows whether the run exists.
    """
    unknown = f"it is unknown whether {name} was submitted, check {link} before a retry"
    if isinstance(error, KeyboardInterrupt):
        return Interrupted(f"interrupted; {unknown}")
    return ServerError(f"{error}; {unknown}")
