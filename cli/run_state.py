"""The state of a run according to its events, and its table in a terminal."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from cli.console import ellipsis
from components.run_report.outcome import Outcome
from core import progress
from core.events import ComponentState, Event, Failed, Phase, RunOutcome

WAITING, RUNNING, CACHED = "waiting", "running", "cached"
DONE, FAILED, NOT_RUN = "done", "failed", "not run"
_STYLES = {
    WAITING: "dim",
    NOT_RUN: "dim",
    RUNNING: "yellow",
    CACHED: "cyan",
    DONE: "green",
    FAILED: "red",
}
_BAR_WIDTH = 16
_WIDE, _WITH_BAR = 76, 96
"""Columns of a terminal from which on the table has a column with the progress, and bars in it."""
_SECONDS_TO_ESTIMATE = 2.0
"""Seconds of work after which the time left is estimated."""


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
      totals: unit -> all items, for the units whose total is known.
      begun: unit -> time and finished items of the first event, for the time left.
      loss: the last loss of a training; None before, and for other components.
      stage: what the component does now; empty while it counts.
    """

    name: str
    state: str = RUNNING
    started: float = field(default_factory=time.monotonic)
    ended: float | None = None
    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    totals: dict[str, int] = field(default_factory=dict)
    begun: dict[str, tuple[float, int]] = field(default_factory=dict)
    loss: float | None = None
    stage: str = ""

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

    def advance(self, event: progress.Event) -> None:
        """Update the progress.

        Args:
          event: a count or a stage of this component.
        """
        self.stage = event.stage
        if not event.unit:
            return
        if event.total is not None:
            self.totals[event.unit] = event.total
        if event.loss is not None:
            self.loss = event.loss
        self.counts[event.unit] = {
            **self.counts.get(event.unit, {}),
            event.source: event.done,
        }
        done = self.done(event.unit)
        # Before the first items there is more work than between others, such as a compilation. The
        # next trial of a Tuner begins at 0.
        first = self.begun.get(event.unit)
        if done and (first is None or done < first[1]):
            self.begun[event.unit] = (time.monotonic(), done)

    def done(self, unit: str) -> int:
        """Return the number of finished items of a unit."""
        return sum(self.counts[unit].values())

    def unit_of_bar(self) -> str | None:
        """Return the first unit with a total whose items are not all finished, or another unit."""
        unfinished = [unit for unit in self.totals if self.done(unit) < self.totals[unit]]
        counted = [unit for unit in list(self.counts) if self.done(unit)]
        finished = [unit for unit in counted if unit in self.totals]
        return next(iter([*unfinished, *finished, *counted]), None)

    def seconds_left(self) -> float | None:
        """Return the estimated seconds until all items of `unit_of_bar` are finished.

        The estimate is None without a total, in the first seconds, after the last item, and in a
        stage, which has no count.
        """
        unit = self.unit_of_bar()
        if unit is None or self.stage or self.ended is not None:
            return None
        done, total = self.done(unit), self.totals.get(unit, 0)
        since, first = self.begun.get(unit, (0.0, done))
        seconds = time.monotonic() - since
        if not first < done < total or seconds < _SECONDS_TO_ESTIMATE:
            return None
        return (total - done) * seconds / (done - first)


@dataclass
class RunState:
    """The state of a run according to its events so far, which Rich renders as a table.

    Attributes:
      components: the rows of the table.
      phase: the current activity while no component runs, else empty.
      outcome: the outcome; None before the end of the run, and after a failure.
      failure: the failure; None if there is none.
      interrupted: whether Ctrl-C or SIGTERM caused the failure.
    """

    components: list[Component] = field(default_factory=list)
    phase: str = ""
    outcome: Outcome | None = None
    failure: Failed | None = None
    interrupted: bool = False

    def update(self, event: Event) -> Component | None:
        """Update the state with an event; return the component that the event ended, or None."""
        running = self.running
        match event:
            case Phase():
                self.phase = event.doing
            case RunOutcome():
                self.outcome = Outcome.from_json(event.outcome)
                self.phase = ""
            case Failed():
                return self._end(event)
            case ComponentState(state="running"):
                self._begin(event.component)
            case ComponentState(state="cached") if running:
                running.state = CACHED
            case ComponentState(state="finished") if running:
                return running.end(CACHED if running.state == CACHED else DONE)
            # The table shows no progress of a component that has not started.
            case progress.Event() if running:
                running.advance(event)
        return None

    def fail(self, error: str, interrupted: bool) -> Component | None:
        """Mark the run as failed; return the component that was running, or None.

        Args:
          error: the error in one line.
          interrupted: whether Ctrl-C or SIGTERM ended the run.
        """
        self.interrupted = interrupted
        return self._end(Failed(error, self.running.name if self.running else None))

    def _begin(self, name: str) -> None:
        self.phase = ""
        waiting = [c for c in self.components if (c.name, c.state) == (name, WAITING)]
        if waiting:
            waiting[0].state, waiting[0].started = RUNNING, time.monotonic()
        else:
            self.components.append(Component(name))

    def _end(self, failure: Failed) -> Component | None:
        self.failure = failure
        self.phase = ""
        failed = self.running.end(FAILED) if self.running else None
        for component in self.components:
            if component.state == WAITING:
                component.state = NOT_RUN
        return failed

    @property
    def running(self) -> Component | None:
        """The component that has started and not ended, or None."""
        begun = [c for c in self.components if c.state in (RUNNING, CACHED)]
        return next((component for component in begun if component.ended is None), None)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        is_wide = options.max_width >= _WIDE
        table = Table(box=None, pad_edge=False)
        table.add_column("component", no_wrap=True)
        table.add_column("state", no_wrap=True)
        table.add_column("seconds", justify="right", no_wrap=True)
        if is_wide:
            table.add_column("")
        for component in list(self.components):
            begun = component.state not in (WAITING, NOT_RUN)
            row: list[RenderableType] = [
                Text(component.name),
                Text(component.state, style=_STYLES[component.state]),
                f"{component.seconds():.1f}" if begun else "",
            ]
            if is_wide:
                row.append(_progress(component, has_bar=options.max_width >= _WITH_BAR))
            table.add_row(*row)
        yield table
        running = self.running
        if running and not is_wide and (text := describe(running)):
            yield Text(f"{running.name}: {text}", style="dim")
        if self.phase:
            yield Text(f"{self.phase} {ellipsis(console)}", style="dim")


def describe(component: Component) -> str:
    """Return the progress of a component, such as `120/400 steps, loss 0.4312, 7 s left`.

    Args:
      component: the component.
    """
    parts = []
    for unit in list(component.counts):
        done, total = component.done(unit), component.totals.get(unit)
        if done or total:
            parts.append(_counted(unit, done, total))
    if component.loss is not None:
        parts.append(f"loss {component.loss:.4f}")
    if component.ended is None:
        left = component.seconds_left()
        parts += [component.stage] if component.stage else []
        parts += [f"{_duration(left)} left"] if left is not None else []
    return ", ".join(parts)


def _counted(unit: str, done: int, total: int | None) -> str:
    """Return a count with its total; bytes as megabytes, such as `1.2/3.4 MB read`."""
    if unit.startswith(progress.BYTES):
        shown, of = f"{done / 1e6:,.1f}", f"/{total / 1e6:,.1f}" if total else ""
        return f"{shown}{of} MB{unit.removeprefix(progress.BYTES)}"
    return f"{done:,}/{total:,} {unit}" if total else f"{done:,} {unit}"


def _progress(component: Component, *, has_bar: bool) -> RenderableType:
    """Return the progress of a component; while it runs, with a bar if `has_bar`.

    The bar pulses if the total is unknown.
    """
    text = Text(describe(component), style="" if component.ended is None else "dim")
    unit = component.unit_of_bar()
    if component.state != RUNNING or unit is None or not component.done(unit) or not has_bar:
        return text
    total = component.totals.get(unit)
    bar = ProgressBar(total, component.done(unit), _BAR_WIDTH, pulse=not total)
    grid = Table.grid(padding=(0, 1))
    grid.add_row(bar, text)
    return grid


def _duration(seconds: float) -> str:
    """Return a duration with its largest units, such as `7 s`, `3 min` or `1 h 5 min`."""
    if seconds < 60:
        return f"{max(seconds, 1):.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
