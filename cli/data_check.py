"""Show the result of `amazon-reviews data check` in the terminal or as JSON."""

from __future__ import annotations

import dataclasses
import os
import shlex
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from cli.console import json_text, print_parts
from core.files import free_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from pipeline.data_check.found import DataCheck, FoundFile, Problem, Task

_FILES, _KINDS, _LABELS, _IGNORED, _CLASSES = 12, 3, 12, 12, 6
"""The maximum numbers of files, of files with other columns, of labels, of ignored columns and of
classes that are shown."""


def as_json(check: DataCheck) -> str:
    """Return the result as JSON, with the keys of `DataCheck` and the key `starts`."""
    values = {"starts": check.starts, **dataclasses.asdict(check)}
    return json_text(values, indent=2)


def show_check(console: Console, check: DataCheck, run: str) -> None:
    """Print the whole result.

    Args:
      console: the output.
      check: the result.
      run: the command that starts a run with the same settings.
    """
    _show_files(console, check)
    if check.left_out:
        print_parts(console, f"not read  {check.left_out}")
    for file in _kinds(check.files):
        _show_columns(console, file, len(check.files) > 1)
    for line in check.reading:
        print_parts(console, f"read as  {line}")
    _show_labels(console, check)
    _show_texts(console, check)
    for note in check.notes:
        print_parts(console, f"classes  {note}")
    for note in check.unused:
        print_parts(console, f"unused  {note}")
    show_problems(console, check)
    if check.is_settled:
        _heading(console, "settings")
        _block(console, check.settings)
    if check.starts:
        from pipeline.data_check.settings_file import as_options

        options = f" {as_options(check.few_texts.settings)}" if check.few_texts else ""
        print_parts(console, ("a run would start", "green"), f": {run}{options}")
        return
    number = sum(problem.is_blocking for problem in check.problems)
    what = "1 problem" if number == 1 else f"{number} problems"
    print_parts(console, ("a run would not start", "red"), f": {what}")


def show_next(console: Console, check: DataCheck, write: str, file: str) -> None:
    """Print what to do until a run starts.

    Args:
      console: the output.
      check: the result, with problems.
      write: the command that writes the settings; empty if they are written.
      file: the file of the settings.
    """
    if not check.is_settled:
        several = "the problems without settings or commands below them"
        problems = "the problem" if len(check.problems) == 1 else several
        print_parts(console, f"settle {problems} first, and check again")
        return
    commands = [command for problem in check.problems for command in problem.commands]
    start = f"amazon-reviews run --config {shlex.quote(file)}"
    # First, because the check proposes another folder when the commands have written one.
    steps = [*([write] if write else []), *commands, start]
    print_parts(console, "next:")
    for step in steps:
        print_parts(console, f"  {step}")


def show_problems(console: Console, check: DataCheck) -> None:
    """Print the problems and questions, each with its remedies.

    Args:
      console: the output.
      check: the result.
    """
    few_texts = (check.few_texts,) if check.few_texts else ()
    for number, problem in enumerate((*check.problems, *few_texts), 1):
        _heading(console, f"{_kind(problem)} {number}")
        print_parts(console, problem.message)
        _show_remedy(console, problem)


def _kind(problem: Problem) -> str:
    if problem.is_blocking:
        return "problem"
    return "question" if problem.choices else "note"


def show_after_failure(console: Console, check: DataCheck, options: str) -> None:
    """Print the problems of a run that has failed, in short.

    Args:
      console: the output.
      check: the result.
      options: the options that select the settings.
    """
    if check.starts:
        return
    show_problems(console, check)
    print_parts(console, "")
    print_parts(console, f"the whole check of the data: {check_command(None, options)}")
    file = free_name("own", ".yaml", os.path.exists)
    show_next(console, check, check_command(None, options, file), file)
    print_parts(console, "")


def _show_remedy(console: Console, problem: Problem) -> None:
    for command in problem.commands:
        print_parts(console, f"  {command}")
    if not problem.choices:
        if problem.settings:
            _block(console, problem.settings)
        return
    for number, choice in enumerate(problem.choices):
        first = "either: " if len(problem.choices) > 1 else ""
        _block(console, choice.settings, f"{'or: ' if number else first}{choice.meaning}")


def _show_files(console: Console, check: DataCheck) -> None:
    size = sum(file.size for file in check.files)
    lines = sum(file.lines for file in check.files)
    read = f"all {lines:,} lines read" if check.is_complete else f"a sample of {lines:,} lines read"
    number = f"{len(check.files):,} {'file' if len(check.files) == 1 else 'files'}"
    if len(check.files) < check.number_of_files:
        number = f"a sample of {number} of {check.number_of_files:,}"
    parts = [check.base, number, f"{size:,} bytes"] if check.files else [check.base]
    print_parts(console, "  ".join([*parts, read] if lines else parts))
    if not check.files:
        return
    has_splits = any(file.group != "all" for file in check.files)
    table = _table("file", *["split"] * has_splits, "format", "compression", "encoding", "lines")
    for file in check.files[:_FILES]:
        shown = f"{file.lines:,}" + ("" if file.is_complete or not file.lines else " (sample)")
        group = [file.group] * has_splits
        unknown = file.format or "unknown"
        row = [file.path, *group, unknown, file.compression or "none", file.encoding or "-", shown]
        table.add_row(*map(_text, row))
    console.print(table)
    if len(check.files) > _FILES:
        print_parts(console, f"and {len(check.files) - _FILES:,} more files")


def _kinds(files: Sequence[FoundFile]) -> list[FoundFile]:
    """Return the first files with different columns."""
    kinds = {tuple((one.name, one.role) for one in file.columns): file for file in reversed(files)}
    return [file for columns, file in reversed(kinds.items()) if columns][:_KINDS]


def _show_columns(console: Console, file: FoundFile, is_named: bool) -> None:
    from pipeline.data_check.found import Role

    _heading(console, f"columns of {file.path}" if is_named else "columns")
    table = _table("column", "read as", "example")
    ignored = [one for one in file.columns if one.role is Role.IGNORED]
    order = list(Role)
    read = [one for one in file.columns if one.role is not Role.IGNORED]
    used = sorted(read, key=lambda one: order.index(one.role))
    for one in [*used, *ignored[:_IGNORED]]:
        table.add_row(_text(one.name), _text(one.role), _text(one.example))
    console.print(table)
    if len(ignored) > _IGNORED:
        print_parts(console, f"and {len(ignored) - _IGNORED:,} more columns, ignored")


def _show_labels(console: Console, check: DataCheck) -> None:
    if not check.labels:
        return
    _heading(console, "labels" if check.is_complete else "labels of the sample")
    table = _table("label", "lines", "read as")
    for label in check.labels[:_LABELS]:
        table.add_row(_text(label.name), _text(f"{label.lines:,}"), _text(label.read_as or "-"))
    console.print(table)
    if len(check.labels) > _LABELS:
        print_parts(console, f"and {len(check.labels) - _LABELS:,} more labels")
    if check.task and check.task.classes:
        print_parts(console, f"task  {_task(check.task)}")
    possible = [task for task in check.other_tasks if task.classes]
    if possible:
        print_parts(console, f"also possible  {'; '.join(map(_task, possible))}")


def _task(task: Task) -> str:
    from preprocessing.reading.listing import joined

    settings = {"sentiment": "data.labels left out", "map": "the mapping in data.labels"}
    setting = settings.get(task.name, f"data.labels: {task.name}")
    return f"{setting} ({len(task.classes):,} classes: {joined(task.classes, _CLASSES)})"


def _show_texts(console: Console, check: DataCheck) -> None:
    texts = check.texts
    if not texts.number:
        return
    _heading(console, "texts" if check.is_complete else "texts of the sample")
    least, median, high, most = texts.words
    print_parts(console, f"words  {least} to {most}, median {median}, 95 % have at most {high}")
    scripts = ", ".join(f"{name} {share:.0%}" for name, share in texts.scripts.items())
    print_parts(console, f"scripts  {scripts}")
    contradictions = ""
    if texts.contradictions:
        contradictions = f"; {texts.contradictions:,} texts also occur with another class"
    print_parts(
        console, f"duplicates  {texts.duplicates:,} of {texts.number:,} texts{contradictions}"
    )
    if check.counts:
        print_parts(console, f"splits  {check.counts}")
    _heading(console, "as a model gets them")
    for one in check.examples:
        print_parts(console, (one.label, "bold"), f"\t{_printable(one.text)}")


def _printable(text: str) -> str:
    from preprocessing.reading.records import printable

    return printable(" ".join(text.split()))


def _table(*names: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in names:
        is_number = name == "lines"
        table.add_column(name, justify="right" if is_number else "left", overflow="fold")
    return table


def _text(value: str) -> Text:
    return Text(_printable(value))


def _heading(console: Console, title: str) -> None:
    console.print()
    console.print(Text(title, style="bold"))


def _block(console: Console, settings: str, comment: str = "") -> None:
    if comment:
        print_parts(console, f"  # {comment}")
    for line in settings.rstrip().splitlines():
        print_parts(console, f"  {line}")


def check_command(folder: str | None, options: str, write: str = "") -> str:
    """Return the command that checks the same data.

    Args:
      folder: the argument of the command; None: the folder in the settings.
      options: the options that select the settings.
      write: the file for the settings; empty: none is written.
    """
    of_folder = f" {shlex.quote(folder)}" if folder else ""
    of_file = f" --write {shlex.quote(write)}" if write else ""
    return f"amazon-reviews data check{of_folder}{options}{of_file}"
