"""Runs the pipeline in a process of its own and shows its components while they work."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from pipeline import events

_SCRIPT = str(Path(__file__).with_name("local_runner.py"))
_STYLES = {events.RUNNING: "yellow", events.CACHED: "cyan", "done": "green", "failed": "red"}
_REFRESH_PER_SECOND = 4
_BAR_WIDTH = 24


@dataclass
class Component:
    """One row of the table."""

    name: str
    state: str = events.RUNNING
    started: float = field(default_factory=time.monotonic)
    ended: float | None = None
    unit: str = ""
    done_by_source: dict[str, int] = field(default_factory=dict)
    total: int | None = None

    @property
    def done(self) -> int:
        return sum(self.done_by_source.values())

    def seconds(self) -> float:
        return (self.ended or time.monotonic()) - self.started


@dataclass
class Watched:
    """What the events of a run have said so far; renders as a table."""

    components: list[Component] = field(default_factory=list)
    outcome: dict[str, Any] | None = None
    failure: dict[str, Any] | None = None

    def take(self, event: dict[str, Any]) -> Component | None:
        """Takes an event in; returns the component that it ended, if any."""
        kind = event["event"]
        if kind == events.OUTCOME:
            self.outcome = event
        elif kind == events.FAILED:
            self.failure = event
            return self._end("failed") if self.components else None
        elif kind == events.RUNNING:
            self.components.append(Component(event["component"]))
        elif kind == events.CACHED:
            self.components[-1].state = events.CACHED
        elif kind == events.FINISHED:
            cached = self.components[-1].state == events.CACHED
            return self._end(events.CACHED if cached else "done")
        elif kind == events.PROGRESS and self.components:
            component = self.components[-1]
            component.unit, component.total = event["unit"], event["total"]
            component.done_by_source[event["source"]] = event["done"]
        return None

    def _end(self, state: str) -> Component:
        component = self.components[-1]
        component.state = state
        component.ended = time.monotonic()
        return component

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = Table(box=None, pad_edge=False)
        table.add_column("component")
        table.add_column("state")
        table.add_column("seconds", justify="right")
        table.add_column("")
        for component in self.components:
            table.add_row(
                component.name,
                Text(component.state, style=_STYLES[component.state]),
                f"{component.seconds():.1f}",
                _work(component),
            )
        yield table


def run_watched(console: Console, log: Path, script: str = _SCRIPT) -> Watched:
    """Runs `script`, which runs the pipeline of this environment's settings, and shows it.

    TFX's, Beam's and TensorFlow's own lines go to `log`. Live on a terminal; elsewhere one line
    per component that ends.
    """
    watched = Watched()
    process, pipe = _start(script, log)
    try:
        received = events.receive(pipe)
        if console.is_terminal:
            _show_live(console, received, watched)
        else:
            _show_lines(console, received, watched)
    except KeyboardInterrupt:
        watched.failure = {"component": None, "error": "interrupted", "input": False}
    finally:
        # Its standard input closes here at the latest, which ends it if it is still running.
        assert process.stdin is not None
        process.stdin.close()
        pipe.close()
        code = process.wait()
    if watched.outcome is None and watched.failure is None:
        running = watched.components[-1].name if watched.components else None
        error = f"the pipeline's process ended with exit code {code}"
        watched.failure = {"component": running, "error": error, "input": False}
    return watched


def _start(script: str, log: Path) -> tuple[subprocess.Popen[bytes], Any]:
    log.parent.mkdir(parents=True, exist_ok=True)
    read_end, write_end = os.pipe()
    with log.open("ab") as sink:
        process = subprocess.Popen(
            [sys.executable, os.path.abspath(script)],
            stdin=subprocess.PIPE,
            stdout=sink,
            stderr=sink,
            pass_fds=[write_end],
            env={**os.environ, events.PIPE_VARIABLE: str(write_end)},
        )
    os.close(write_end)
    return process, os.fdopen(read_end)


def _show_live(console: Console, received: Iterator[dict[str, Any]], watched: Watched) -> None:
    with Live(watched, console=console, refresh_per_second=_REFRESH_PER_SECOND):
        for event in received:
            watched.take(event)


def _show_lines(console: Console, received: Iterator[dict[str, Any]], watched: Watched) -> None:
    for event in received:
        ended = watched.take(event)
        if ended:
            console.print(f"{ended.name:<20} {ended.state:<8} {ended.seconds():7.1f} s")


def _work(component: Component) -> Any:
    """A bar, which pulses where the end is not known; nothing once the component is done."""
    if component.state != events.RUNNING or not component.done:
        return ""
    end = f"/{component.total:,}" if component.total else ""
    bar = ProgressBar(component.total, component.done, _BAR_WIDTH, pulse=not component.total)
    grid = Table.grid(padding=(0, 1))
    grid.add_row(bar, f"{component.done:,}{end} {component.unit}")
    return grid
