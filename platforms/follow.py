"""A run on a cluster, whichever it is: its states, its errors, and following it to its end."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import urllib3

from core import exit_codes

Say = Callable[[str], None]

POLL_SECONDS = 10.0
PATIENCE_SECONDS = 600.0
"""How long the cluster may stay silent before nobody waits any more."""

ENDED_WELL = ("SUCCEEDED", "SKIPPED")
ENDED_BADLY = ("FAILED", "CANCELED", "CANCELLED")


class SubmitError(Exception):
    """The cluster refused the run, or does not answer as it should; the message is one line."""

    def __init__(self, message: str):
        super().__init__(one_line(message))


class NoAnswer(SubmitError):
    """The cluster could not be asked this time; later it may well answer.

    Attributes:
      sent: whether the request may have reached it all the same.
    """

    def __init__(self, message: str, sent: bool = True):
        super().__init__(message)
        self.sent = sent


@dataclass(frozen=True)
class Task:
    """A task of a run; `state` is that of the API without its prefix, `FAILED`."""

    name: str
    state: str
    error: str = ""


@dataclass(frozen=True)
class Status:
    """A run at one moment. `tasks` may hold more than the pipeline's own: what the engine adds."""

    state: str
    tasks: tuple[Task, ...] = ()
    error: str = ""


class Run(Protocol):
    """A submitted run."""

    @property
    def name(self) -> str: ...

    @property
    def link(self) -> str:
        """Where a person looks at it."""

    @property
    def logs(self) -> str:
        """The command or page that shows what its tasks wrote."""

    def status(self) -> Status:
        """Asks the cluster. Raises NoAnswer where asking again may help, else SubmitError."""


def follow(
    run: Run,
    task_names: Sequence[str],
    say: Say,
    poll_seconds: float = POLL_SECONDS,
    patience_seconds: float = PATIENCE_SECONDS,
) -> int:
    """Says each change of the run's and its tasks' states until it ends; see `submit`."""
    seen: dict[str, str] = {}
    started = answered = time.monotonic()
    silent = False
    try:
        while True:
            try:
                status = run.status()
            except NoAnswer as error:
                if time.monotonic() - answered > patience_seconds:
                    say(f"no answer for too long ({error}); {_goes_on(run)}")
                    return exit_codes.FAILED
                if not silent:
                    say(f"no answer ({error}); still trying")
                silent = True
            except SubmitError as error:
                say(f"cannot be followed ({error}); {_goes_on(run)}")
                return exit_codes.FAILED
            else:
                answered, silent = time.monotonic(), False
                tasks = _own_tasks(status, task_names)
                for task in (*tasks, Task(run.name, status.state)):
                    known = task.state and not task.state.endswith("UNSPECIFIED")
                    if known and seen.get(task.name) != task.state:
                        seen[task.name] = task.state
                        words = task.state.lower().replace("_", " ")
                        say(f"{time.strftime('%H:%M:%S')}  {task.name}: {words}")
                if status.state in ENDED_WELL + ENDED_BADLY:
                    return _end(run, status, tasks, time.monotonic() - started, say)
            time.sleep(poll_seconds)
    except KeyboardInterrupt:
        say(f"stopped waiting; {_goes_on(run)}")
        return exit_codes.INTERRUPTED


def _goes_on(run: Run) -> str:
    return f"the run goes on, see and stop it at {run.link}"


def _end(run: Run, status: Status, tasks: list[Task], seconds: float, say: Say) -> int:
    if status.state in ENDED_WELL:
        say(f"{run.name} succeeded after {int(seconds) // 60} min {int(seconds) % 60} s")
        return exit_codes.PUSHED
    failed = [task for task in tasks if task.state == "FAILED"]
    for task in failed:
        say(f"{task.name} failed: {one_line(task.error) or 'the cluster tells no reason'}")
    if status.state != "FAILED":
        say(f"{run.name} was cancelled")
    elif not failed:
        say(f"{run.name} failed: {one_line(status.error) or 'the cluster tells no reason'}")
    say(f"logs: {run.logs}")
    return exit_codes.FAILED


def _own_tasks(status: Status, names: Sequence[str]) -> list[Task]:
    """The pipeline's own tasks under their own names.

    Kubeflow also lists each task's driver, its pod and the graph itself, Vertex AI the graph. Of
    those only a failed driver matters: its task never started.
    """
    spelled = {_plain(name): name for name in names}
    own: dict[str, Task] = {}
    for task in status.tasks:
        plain = _plain(task.name)
        of_driver = spelled.get(plain.removesuffix("-driver"))
        if plain in spelled:
            name = spelled[plain]
        elif of_driver and task.state == "FAILED":
            name = f"{of_driver} (its driver)"
        else:
            continue
        own[name] = Task(name, task.state, task.error)
    return list(own.values())


def _plain(name: str) -> str:
    return name.lower().replace("_", "-")


def no_connection(error: Exception) -> NoAnswer:
    """What urllib3 raised, in words."""
    cause = getattr(error, "reason", None) or error
    never_sent = isinstance(
        cause,
        urllib3.exceptions.NewConnectionError
        | urllib3.exceptions.ConnectTimeoutError
        | urllib3.exceptions.SSLError,
    )
    # It puts the connection's repr in front.
    text = re.sub(r"^(<.*?>|\w+\(.*?\)): ", "", str(cause))
    return NoAnswer(text, sent=not never_sent)


def unknown_whether(error: NoAnswer, name: str, link: str) -> SubmitError:
    """For a run that may have been submitted although no answer came back."""
    return SubmitError(
        f"{error}; whether {name} was submitted is not known, look at {link} before another try"
    )


def one_line(text: str, longest: int = 500) -> str:
    """`text` without line breaks, cut where it gets longer than a person reads."""
    line = " ".join(text.split())
    return line if len(line) <= longest else line[: longest - 1] + "…"
