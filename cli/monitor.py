"""Run a pipeline in a process of its own, and show its components in a table while they work."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from components.run_report.outcome import Outcome
from core import exit_codes, processes
from core.events import FAILED, PROGRESS, VARIABLE, receive
from pipeline.config import PipelineConfig, recorded_settings
from pipeline.nodes import TRAINER
from pipeline.selected_nodes import node_ids
from platforms.local import events, folders

_WAITING, _NOT_RUN = "waiting", "not run"
_STYLES = {
    _WAITING: "dim",
    _NOT_RUN: "dim",
    events.RUNNING: "yellow",
    events.CACHED: "cyan",
    "done": "green",
    "failed": "red",
}
_BAR_WIDTH = 24
_REFRESH_PER_SECOND = 4
_SECONDS_TO_SAVE = 40.0
"""Timeout of an interrupted training. Its processes have less time for their checkpoint."""
_SECONDS_TO_END = 10.0
"""Timeout of a pipeline's process after it has closed the pipe of its events."""


def run_pipeline(
    console: Console, log: Path, config: PipelineConfig, lock: int | None = None
) -> Watched:
    """Run the pipeline of some settings in a process of its own; see `run_watched`.

    The process reads `config` from its standard input, so a later change of the settings file has
    no effect.

    Args:
      console: the output for the states of the components.
      log: the file for the log lines.
      config: the settings, for which `platforms.local.folders.prepare` was called.
      lock: the descriptor that `prepare` returned.

    Returns:
      The state of the run after its end.

    Raises:
      OSError: the log cannot be written.
    """
    command = processes.command("platforms.local.main", folders.PREPARED)
    return run_watched(console, log, command, node_ids(config), lock, recorded_settings(config))


def run_watched(
    console: Console,
    log: Path,
    command: Sequence[str],
    names: Sequence[str] = (),
    lock: int | None = None,
    given: str = "",
) -> Watched:
    """Run a pipeline in a process of its own, and show its components while they work.

    A terminal shows a live table. Any other output has one line for each phase, and for each
    component that ends.

    Args:
      console: the output for the states of the components.
      log: the file for the log lines.
      command: the command of the process, which sends the events of `platforms.local.events`.
      names: the components that are shown as waiting; others are added when they start.
      lock: the descriptor that `folders.lock_root` returned, which the process inherits; None for
        a run without a lock.
      given: the content of the standard input of the process.

    Returns:
      The state of the run after its end, with its outcome or its failure.

    Raises:
      OSError: the log cannot be written, or there is no such command.
    """
    watched = Watched([Component(name, _WAITING) for name in names], "starting")
    # SIGTERM is treated like Ctrl-C, so that a training saves a checkpoint. By default it would end
    # this process, and the pipeline's process would end with it at once.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    process, pipe = _start(command, log, lock, given)
    live = Live(watched, console=console, refresh_per_second=_REFRESH_PER_SECOND)
    # The last state of the table stays on the terminal.
    with live if console.is_terminal else contextlib.nullcontext():
        try:
            for event in receive(pipe):
                ended = watched.update(event)
                if not console.is_terminal:
                    _print_line(console, watched, event, ended)
            with contextlib.suppress(KeyboardInterrupt, subprocess.TimeoutExpired):
                process.wait(_SECONDS_TO_END)
        except KeyboardInterrupt:
            _interrupt(console, process, watched)
        finally:
            pipe.close()
            process.kill()
            code = process.wait()
        if watched.outcome is None and watched.failure is None:
            interrupted = code in (-signal.SIGINT, exit_codes.INTERRUPTED)
            watched.fail(f"the pipeline's process ended with exit code {code}", interrupted)
    return watched


def _interrupt(console: Console, process: subprocess.Popen[bytes], watched: Watched) -> None:
    """End the pipeline after Ctrl-C or SIGTERM.

    A training saves a checkpoint first; a second signal ends it at once.
    """
    ended = watched.fail("interrupted", interrupted=True)
    if ended is None or ended.name != TRAINER:
        return
    console.print(
        Text("interrupted: the training saves a checkpoint; press Ctrl-C again to end it at once"),
        soft_wrap=True,
    )
    process.terminate()
    with contextlib.suppress(KeyboardInterrupt, subprocess.TimeoutExpired):
        process.wait(_SECONDS_TO_SAVE)


def _start(
    command: Sequence[str], log: Path, lock: int | None, given: str
) -> tuple[subprocess.Popen[bytes], TextIO]:
    """Start a process; return it and the pipe from which its events are read."""
    read_end, write_end = os.pipe()
    # Not a pipe: this process cannot write to the pipe of a process that has ended.
    with log.open("ab") as sink, tempfile.TemporaryFile(dir=log.parent) as source:
        source.write(given.encode())
        source.seek(0)
        process = subprocess.Popen(
            list(command),
            stdin=source,
            stdout=sink,
            stderr=sink,
            pass_fds=[write_end] if lock is None else [write_end, lock],
            env={**os.environ, VARIABLE: str(write_end)},
            # Only this process receives Ctrl-C from the terminal; it ends the other one.
            start_new_session=True,
        )
    os.close(write_end)
    return process, os.fdopen(read_end)


def _print_line(
    console: Console, watched: Watched, event: dict[str, Any], ended: Component | None
) -> None:
    if event["event"] == events.PHASE:
        console.print(Text(f"{watched.phase} …"))
    if ended:
        console.print(Text(f"{ended.name:<20} {ended.state:<8} {ended.seconds():7.1f} s"))


@dataclass
class Component:
    """One row of the table: a component, its state and its progress.

    Attributes:
      name: the id of the component.
      state: the state, a key of `_STYLES`.
      started: the time of the start, in seconds of `time.monotonic`.
      ended: the time of the end, in seconds of `time.monotonic`; None before the end.
      counts: unit -> source -> finished items. On Flink the workers report texts, and Flink
        reports tasks.
      totals: unit -> all items; None if their number is unknown.
    """

    name: str
    state: str = events.RUNNING
    started: float = field(default_factory=time.monotonic)
    ended: float | None = None
    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    totals: dict[str, int | None] = field(default_factory=dict)

    def end(self, state: str) -> Component:
        """Set the last state of the component and the time of its end; return the component.

        Args:
          state: a key of `_STYLES`.
        """
        self.state, self.ended = state, time.monotonic()
        return self

    def seconds(self) -> float:
        """Return the seconds from the start of the component to its end, or until now."""
        return (self.ended or time.monotonic()) - self.started


@dataclass(frozen=True)
class Failure:
    """The reason why a run did not finish.

    Attributes:
      error: the error in one line.
      component: the component that failed or was interrupted; None if none was running.
      input: whether the settings or the input are wrong.
      interrupted: whether Ctrl-C or SIGTERM ended the run.
    """

    error: str
    component: str | None
    input: bool = False
    interrupted: bool = False


@dataclass
class Watched:
    """The state of a run according to its events so far, which Rich renders as a table.

    Attributes:
      components: the rows of the table.
      phase: the current activity while no component runs, else empty.
      outcome: the outcome; None before the end of the run, and after a failure.
      failure: the failure; None if there is none.
    """

    components: list[Component] = field(default_factory=list)
    phase: str = ""
    outcome: Outcome | None = None
    failure: Failure | None = None

    def update(self, event: dict[str, Any]) -> Component | None:
        """Update the state with an event; return the component that the event ended, or None.

        Args:
          event: an event of `core.events` or `platforms.local.events`.
        """
        kind = event["event"]
        if kind == events.PHASE:
            self.phase = event["doing"]
        elif kind == events.OUTCOME:
            self.outcome = Outcome.from_json(event["outcome"])
            self.phase = ""
        elif kind == FAILED:
            return self._end(Failure(event["error"], event["component"], input=event["input"]))
        elif kind == events.RUNNING:
            self.phase, name = "", event["component"]
            waiting = [c for c in self.components if (c.name, c.state) == (name, _WAITING)]
            if waiting:
                waiting[0].state, waiting[0].started = events.RUNNING, time.monotonic()
            else:
                self.components.append(Component(name))
        elif (component := self.running) is None:
            pass  # The table shows no progress of a component that has not started.
        elif kind == events.CACHED:
            component.state = events.CACHED
        elif kind == events.FINISHED:
            cached = component.state == events.CACHED
            return component.end(events.CACHED if cached else "done")
        elif kind == PROGRESS:
            component.totals[event["unit"]] = event["total"]
            component.counts.setdefault(event["unit"], {})[event["source"]] = event["done"]
        return None

    def fail(self, error: str, interrupted: bool) -> Component | None:
        """Mark the run as failed; return the component that was running, or None.

        Args:
          error: the error in one line.
          interrupted: whether Ctrl-C or SIGTERM ended the run.
        """
        name = self.running.name if self.running else None
        return self._end(Failure(error, name, interrupted=interrupted))

    def _end(self, failure: Failure) -> Component | None:
        self.failure = failure
        self.phase = ""
        failed = self.running.end("failed") if self.running else None
        for component in self.components:
            if component.state == _WAITING:
                component.state = _NOT_RUN
        return failed

    @property
    def running(self) -> Component | None:
        """The component that has started and not ended, or None."""
        begun = [c for c in self.components if c.state in (events.RUNNING, events.CACHED)]
        return next((component for component in begun if component.ended is None), None)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = Table(box=None, pad_edge=False)
        table.add_column("component")
        table.add_column("state")
        table.add_column("seconds", justify="right")
        table.add_column("")
        for component in self.components:
            begun = component.state not in (_WAITING, _NOT_RUN)
            table.add_row(
                Text(component.name),
                Text(component.state, style=_STYLES[component.state]),
                f"{component.seconds():.1f}" if begun else "",
                _progress(component),
            )
        yield table
        if self.phase:
            yield Text(f"{self.phase} …", style="dim")


def _progress(component: Component) -> Any:
    """Return the progress bar of a running component, and "" for any other component.

    The bar pulses if the total is unknown.
    """
    done = {unit: sum(parts.values()) for unit, parts in component.counts.items()}
    totals = [(number, component.totals[unit], unit) for unit, number in done.items() if number]
    if component.state != events.RUNNING or not totals:
        return ""
    texts = [f"{n:,}/{total:,} {unit}" if total else f"{n:,} {unit}" for n, total, unit in totals]
    number, total, _ = totals[0]
    bar = ProgressBar(total, number, _BAR_WIDTH, pulse=not total)
    grid = Table.grid(padding=(0, 1))
    grid.add_row(bar, Text(", ".join(texts)))
    return grid
