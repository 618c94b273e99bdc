"""The lines of `runs compare`: what changed between two runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from cli.console import print_parts

if TYPE_CHECKING:
    from rich.console import Console

    from components.run_report.changes import Changes, Difference

_TEXTS, _CHARACTERS = 3, 160
"""Number of reviews that are printed, and the maximum number of their characters."""


def show_changes(console: Console, changes: Changes) -> None:
    """Print what changed between two runs.

    Args:
      console: the output.
      changes: what changed.
    """
    console.print(Text.assemble((changes.before, "bold"), " → ", (changes.after, "bold")))
    if changes.answers_sentence:
        print_parts(console, changes.answers_sentence)
    if changes.metrics and not changes.same_reviews:
        note = "The runs may have other test reviews, so their metrics differ by chance too."
        print_parts(console, note)
    if changes.unknown:
        print_parts(console, changes.unknown)
    table = Table(box=None, pad_edge=False)
    for name, justify in (("", "left"), ("before", "left"), ("after", "left"), ("change", "right")):
        table.add_column(name, justify=justify, overflow="fold")  # type: ignore[arg-type]
    for metric in changes.metrics:
        change = metric.after - metric.before
        values = (_number(metric.before), _number(metric.after), _number(change, "{:+.4f}"))
        table.add_row(metric.title, *values)
    for title, found in [("Results", changes.results), *changes.groups.items()]:
        _add_group(table, title, found)
    console.print(table)
    if changes.unchanged:
        print_parts(console, changes.unchanged)
    _show_regressions(console, changes)


def _add_group(table: Table, title: str, found: Sequence[Difference]) -> None:
    if found:
        table.add_section()
        table.add_row(Text(title, style="bold"))
    for each in found:
        table.add_row(Text(each.name), Text(each.before), Text(each.after))


def _show_regressions(console: Console, changes: Changes) -> None:
    if not (changes.answers and changes.answers.regressions and changes.labels):
        return
    names = changes.labels.names
    title = f"{changes.noun.capitalize()}s that the second model gets wrong and the first one right"
    console.print(Text(title, style="bold"))
    for each in changes.answers.regressions[:_TEXTS]:
        text = " ".join(each.text.split())
        shown = text if len(text) <= _CHARACTERS else f"{text[: _CHARACTERS - 1]}…"
        answer = f"{names[each.label]}, answered {names[each.predicted]}"
        print_parts(console, f"  {answer}: {shown}")


def _number(value: float, pattern: str = "{:.4f}") -> str:
    return pattern.format(value) if math.isfinite(value) else "–"
