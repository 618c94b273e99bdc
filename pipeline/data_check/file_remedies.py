"""Find settings with which the files can be read, and try each one with the reader of a run."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from core.errors import InputError
from pipeline.data_check.columns import Candidate, Proposal, nested_columns, propose, values_of
from pipeline.data_check.converted import Converted
from pipeline.data_check.found import Choice, Problem
from pipeline.data_check.inspections import Inspections
from pipeline.data_check.left_out import Failing, Settled, leave_out
from pipeline.data_check.settings_file import data_yaml
from preprocessing.reading.columns import LABEL, TEXT
from preprocessing.reading.copies import find_copies
from preprocessing.reading.detect import Inspection
from preprocessing.reading.files import SourceFile
from preprocessing.reading.look import Table, read_table
from preprocessing.reading.records import EACH_TASK, ReadOptions

_SHOWN = 4
"""Maximum number of names in a message."""
_LISTS_OF_TEXTS = (
    "lists of texts, which no run reads; write a record for each text, as pandas' `explode` does"
)
_OBJECTS = (
    "objects or lists, which no run reads; write each of their values as a column of its own, as "
    "pandas' `json_normalize` does"
)
"""What columns of JSON lines contain that is neither a label nor a text, and the remedy."""
_EXCERPT = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""")
"""A part of a file in a message."""


@dataclass(frozen=True)
class _Alike:
    """Files that cannot be read, with the same columns, or without columns the same problem.

    Attributes:
      failing: the files.
      table: the first records of the first file; None if it has no columns.
      message: the problem.
      proposal: the columns that may have a role; None if no column may have one.
    """

    failing: Sequence[Failing]
    table: Table | None
    message: str
    proposal: Proposal | None

    @property
    def files(self) -> list[SourceFile]:
        """The files without the reasons."""
        return [each.file for each in self.failing]

    def new_columns(self, options: ReadOptions) -> dict[str, str]:
        """Return the most likely columns of the proposal that the options do not have."""
        found = self.proposal.columns() if self.proposal else {}
        return {role: name for role, name in found.items() if options.columns.get(role) != name}


def settle_files(
    converted: Converted, options: ReadOptions, inspections: Inspections, *, may_split: bool
) -> Settled:
    """Find columns for files whose columns are unknown, and leave out files that are not reviews.

    Args:
      converted: the files.
      options: the options for reading them.
      inspections: the results of inspecting them.
      may_split: whether `data.splits` may be set. It cannot name files in folders of spans.

    Raises:
      OSError: a file cannot be read.
    """
    good, failing = _tried(converted, options, inspections)
    columns: dict[str, str] = {}
    problems: list[Problem] = []
    unread: list[_Alike] = []
    for group in _alike(failing, converted, options):
        new = group.new_columns(options)
        contradicts = any(columns.get(role, name) != name for role, name in new.items())
        together = [*good, *group.files]
        if not new or contradicts or _errors_with(new, together, options, inspections):
            unread.append(group)
            continue
        columns, good = new, together
        problems.append(Problem(group.message, data_yaml({"columns": new})))
        problems += _questions(group.proposal)
    changes: dict[str, Any] = {"columns": columns} if columns else {}
    if not good:
        problems += _problems_of_all(unread, options, inspections)
        return Settled((), changes, tuple(problems))
    others = [
        Failing(each.file, InputError(f"{each.error}{_rename(group, options)}"))
        for group in unread
        for each in group.failing
    ]
    copies = _copies(good, _with_columns(options, columns), inspections)
    left_out = leave_out(converted, good, others, copies, may_split)
    return Settled(left_out.files, {**changes, **left_out.changes}, (*problems, *left_out.problems))


def _tried(
    converted: Converted, options: ReadOptions, inspections: Inspections
) -> tuple[list[SourceFile], list[Failing]]:
    """Return the files that can be read, and the others."""
    good: list[SourceFile] = []
    failing: list[Failing] = []
    inspected = inspections.inspect(converted.files, options)
    for file, item in zip(converted.files, inspected, strict=True):
        error = converted.errors.get(file.path, item)
        if isinstance(error, InputError):
            failing.append(Failing(file, error))
        else:
            good.append(file)
    return good, failing


def _problems_of_all(
    unread: Sequence[_Alike], options: ReadOptions, inspections: Inspections
) -> list[Problem]:
    """Return the problem of each group of files, of which none can be read.

    Args:
      unread: the groups, of which the smallest one is the last.
      options: the options for reading the files.
      inspections: the results of inspecting them.
    """
    if not unread:
        return []
    *others, last = unread
    hint = _flatten(last.table, last.message) if last.table else ""
    if last.proposal and not hint:
        hint = _why_not(last.proposal, last.files, options, inspections)
    messages = [last.message + hint]
    messages += [group.message + _rename(group, options) for group in others]
    return list(map(Problem, messages))


def _alike(failing: Sequence[Failing], converted: Converted, options: ReadOptions) -> list[_Alike]:
    """Return the files in groups, the largest one first."""
    groups: dict[object, list[Failing]] = {}
    tables: dict[object, Table | None] = {}
    for each in failing:
        table = _table(each.file, options)
        problem = _EXCERPT.sub("", str(each.error).replace(each.file.path, ""))
        key = tuple(table.names) if table else problem
        groups.setdefault(key, []).append(each)
        tables.setdefault(key, table)
    found = []
    for group, first in zip(groups.values(), tables.values(), strict=True):
        message = converted.message(str(group[0].error)) + _and_others(len(group), first)
        proposal = propose(first, options) if first else None
        if first and proposal and _is_record(first, proposal.columns()):
            proposal = None
        found.append(_Alike(group, first, message, proposal))
    return sorted(found, key=lambda alike: len(alike.failing), reverse=True)


def _table(file: SourceFile, options: ReadOptions) -> Table | None:
    """Return the first records of a file; None if there are none, or it has no columns."""
    try:
        table = read_table(file.path, options)
    except InputError:
        return None
    return table if table and table.records else None


def _and_others(number: int, table: Table | None) -> str:
    """Return a clause about the other files of a group of `_alike`."""
    if number == 1:
        return ""
    more = "1 more file has" if number == 2 else f"{number - 1:,} more files have"
    return f" ({more} the same {'columns' if table else 'problem'})"


def _with_columns(options: ReadOptions, columns: Mapping[str, str]) -> ReadOptions:
    """Return options with columns, and a task for which every label is valid."""
    return replace(options, columns={**options.columns, **columns}, task=EACH_TASK)


def _errors_with(
    columns: Mapping[str, str],
    files: Sequence[SourceFile],
    options: ReadOptions,
    inspections: Inspections,
) -> list[InputError]:
    """Return the errors about files that cannot be read with these columns."""
    inspected = inspections.inspect(files, _with_columns(options, columns))
    return [item for item in inspected if isinstance(item, InputError)]


def _why_not(
    proposal: Proposal,
    files: Sequence[SourceFile],
    options: ReadOptions,
    inspections: Inspections,
) -> str:
    """Return a clause about what files lack that cannot be read with the proposed columns.

    Args:
      proposal: the columns.
      files: the files, whose columns are the same.
      options: the options for reading them.
      inspections: the results of inspecting the files.
    """
    columns = proposal.columns()
    if TEXT not in columns:
        return "; no column looks like texts, which have several words"
    if LABEL not in columns:
        return (
            f"; the text may be `{columns[TEXT]}`, but no column looks like labels: write the "
            "label of each text into a column, or score the texts with `amazon-reviews predict "
            "--input`, which needs no labels"
        )
    errors = _errors_with(columns, files, options, inspections)
    if not errors:
        return ""
    return f"; with label `{columns[LABEL]}` and text `{columns[TEXT]}`: {errors[0]}"


def _is_record(table: Table, columns: Mapping[str, str]) -> bool:
    """Return whether the names of the columns are a record, whose label other records have too.

    Settings with these names would lose it. A further header has the name of the text as well.
    """
    label, text = columns.get(LABEL, ""), columns.get(TEXT, "")
    alike = [one for one in table.records if label and one.get(label) == label]
    return any(one.get(text) != text for one in alike)


def _questions(proposal: Proposal | None) -> list[Problem]:
    """Return the question of each role that several columns may have."""
    if proposal is None:
        return []
    roles = {TEXT: proposal.text, LABEL: proposal.label}
    return [
        question(role, candidates) for role, candidates in roles.items() if proposal.ambiguous(role)
    ]


def question(role: str, candidates: Sequence[Candidate], *, is_blocking: bool = True) -> Problem:
    """Return the question which of several columns has a role.

    Args:
      role: `label` or `text`.
      candidates: the columns, the most likely one first.
      is_blocking: whether a run requires the answer.
    """
    shown = candidates[:_SHOWN]
    choices = tuple(Choice(data_yaml({"columns": {role: one.name}}), one.example) for one in shown)
    names = ", ".join(f"`{one.name}`" for one in shown)
    return Problem(
        f"{len(shown)} columns may be the {role}: {names}; choose one",
        choices[0].settings,
        choices=choices,
        is_blocking=is_blocking,
    )


def _copies(
    files: Sequence[SourceFile], options: ReadOptions, inspections: Inspections
) -> list[Failing]:
    """Return the files that contain the same reviews as another one, each of them once."""
    inspected = inspections.inspect(files, options)
    layouts = [item.layout for item in inspected if isinstance(item, Inspection)]
    if len(layouts) < len(files):
        return []
    found = {
        copy.file: Failing(copy.file, InputError(copy.message))
        for copy in find_copies(files, layouts)
        # No file of another span is left out. `choose_layouts` names these.
        if copy.file.span == copy.other.span
    }
    return list(found.values())


def _rename(group: _Alike, options: ReadOptions) -> str:
    """Return a clause about files that could be read if their columns had other names."""
    columns = group.new_columns(options)
    if LABEL not in columns or TEXT not in columns:
        return ""
    shown = ", ".join(f"{role} `{name}`" for role, name in columns.items())
    return f"; its columns may be {shown}: rename them to those of the other files to read it too"


def _flatten(table: Table, message: str) -> str:
    """Return a clause about columns with objects, which may contain the label and the text.

    Args:
      table: the first records of the file.
      message: the problem, which may name such a column already.
    """
    names = [name for name in nested_columns(table) if f"`{name}`" not in message]
    lists = [name for name in names if _has_lists_of_texts(table, name)]
    objects = [name for name in names if name not in lists]
    return _nested_clause(lists, _LISTS_OF_TEXTS) + _nested_clause(objects, _OBJECTS)


def _nested_clause(names: Sequence[str], what: str) -> str:
    shown = ", ".join(f"`{name}`" for name in names[:_SHOWN])
    return f"; {shown}: {what}" if names else ""


def _has_lists_of_texts(table: Table, name: str) -> bool:
    """Return whether each value of a column is a list of texts, such as the questions of an intent.

    Args:
      table: the first records of the file.
      name: the name of the column.
    """
    values = values_of(table, name)
    return all(
        isinstance(value, list) and all(isinstance(text, str) for text in value) for value in values
    )
