"""The state of a run, as a table of its components."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from core.events import FAILED, PROGRESS
from platforms.local import events

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


@dataclass
class Count:
    """The number of finished items of one unit, such as reviews."""

    done_by_source: dict[str, int] = field(default_factory=dict)
    total: int | None = None

    @property
    def done(self) -> int:
        return sum(self.done_by_source.values())


@dataclass
class Component:
    """One row of the table: a component, its state and its progress."""

    name: str
    state: str = events.RUNNING
    started: float = field(default_factory=time.monotonic)
    ended: float | None = None
    counts: dict[str, Count] = field(default_factory=dict)
    """Unit -> its count. On Flink the workers count reviews, and Flink counts tasks."""

    def end(self, state: str) -> Component:
        """Set the last state, and return this component."""
        self.state, self.ended = state, time.monotonic()
        return self

    def seconds(self) -> float:
        return (self.ended or time.monotonic()) - self.started


@dataclass
class Watched:
    """The state of a run according to its events so far; renders as a table."""

    components: list[Component] = field(default_factory=list)
    phase: str = ""
    """The current activity while no component runs."""
    outcome: dict[str, Any] | None = None
    failure: dict[str, Any] | None = None

    @classmethod
    def of(cls, names: Sequence[str]) -> Watched:
        """Return a run that has not started, of components with these names."""
        return cls([Component(name, _WAITING) for name in names], "starting")

    def update(self, event: dict[str, Any]) -> Component | None:
        """Apply an event; return the component that it ended, or None."""
        kind = event["event"]
        if kind == events.PHASE:
            self.phase = event["doing"]
        elif kind == events.OUTCOME:
            self.outcome, self.phase = event, ""
        elif kind == FAILED:
            return self.fail(event)
        elif kind == events.RUNNING:
            self._begin(event["component"])
        elif (component := self.running) is None:
            pass  # The table shows no progress of a component that has not started.
        elif kind == events.CACHED:
            component.state = events.CACHED
        elif kind == events.FINISHED:
            cached = component.state == events.CACHED
            return component.end(events.CACHED if cached else "done")
        elif kind == PROGRESS:
            count = component.counts.setdefault(event["unit"], Count())
            count.total = event["total"]
            count.done_by_source[event["source"]] = event["done"]
        return None

    def fail(self, failure: dict[str, Any]) -> Component | None:
        """Mark the run as failed; return the component that was running, or None."""
        self.failure, self.phase = failure, ""
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

    def _begin(self, name: str) -> None:
        self.phase = ""
        waiting = [c for c in self.components if c.name == name and c.state == _WAITING]
        if waiting:
            waiting[0].state, waiting[0].started = events.RUNNING, time.monotonic()
        else:
            self.components.append(Component(name))

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
    """Return a progress bar, which pulses if the total is unknown; empty after the end."""
    counts = {unit: count for unit, count in component.counts.items() if count.done}
    if component.state != events.RUNNING or not counts:
        return ""
    first = next(iter(counts.values()))
    bar = ProgressBar(first.total, first.done, _BAR_WIDTH, pulse=not first.total)
    texts = []
    for unit, count in counts.items():
        end = f"/{count.total:,}" if count.total else ""
        texts.append(f"{count.done:,}{end} {unit}")
    grid = Table.grid(padding=(0, 1))
    grid.add_row(bar, Text(", ".join(texts)))
    return grid
