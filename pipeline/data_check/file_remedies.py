"""Find settings with which the files can be read, and try each one with the reader of a run."""

from __future__ import annotations

import os
import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from core.errors import InputError
from core.storage import is_url
from pipeline.data_check.columns import Candidate, Proposal, nested_columns, propose, values_of
from pipeline.data_check.converted import Converted
from pipeline.data_check.found import Choice, Problem
from pipeline.data_check.inspections import Inspections
from pipeline.data_check.settings_file import data_yaml
from pipeline.data_check.splits import propose_splits
from preprocessing.reading import globs
from preprocessing.reading.columns import LABEL, TEXT
from preprocessing.reading.copies import find_copies
from preprocessing.reading.detect import Inspection
from preprocessing.reading.files import SourceFile, relative_path
from preprocessing.reading.listing import joined
from preprocessing.reading.look import Table, read_table
from preprocessing.reading.records import EACH_TASK, ReadOptions

_SHOWN = 4
"""Maximum number of names in a message."""
_EXCERPT = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""")
"""A part of a file in a message."""


@dataclass(frozen=True)
class Settled:
    """What settles some problems.

    Attributes:
      files: the files that are left.
      changes: key in `data` -> value.
      problems: the problems and their remedies.
    """

    files: tuple[SourceFile, ...]
    changes: Mapping[str, Any]
    problems: tuple[Problem, ...]


def settle_files(
    converted: Converted, options: ReadOptions, inspections: Inspections, *, has_spans: bool
) -> Settled:
    """Find columns for files whose columns are unknown, and leave out files that are not reviews.

    Args:
      converted: the files.
      options: the options for reading them.
      inspections: the results of inspecting them.
      has_spans: whether the files are in folders of spans, which `data.splits` cannot name.
    """
    files = converted.files
    inspected = inspections.inspect(files, options)
    tried = [
        converted.errors.get(file.path, item) for file, item in zip(files, inspected, strict=True)
    ]
    failing = [
        (file, item)
        for file, item in zip(files, tried, strict=True)
        if isinstance(item, InputError)
    ]
    good = [
        file for file, item in zip(files, tried, strict=True) if not isinstance(item, InputError)
    ]
    columns: dict[str, str] = {}
    problems: list[Problem] = []
    others: list[tuple[SourceFile, InputError]] = []
    messages = []
    for group in _alike(failing, options):
        _, error, table = group[0]
        message = converted.message(str(error)) + _and_others(len(group), table)
        proposal = propose(table, options) if table else None
        if table and proposal and _is_record(table, proposal.columns()):
            proposal = None
        found = proposal.columns() if proposal else {}
        new = {role: name for role, name in found.items() if options.columns.get(role) != name}
        together = [*good, *(item[0] for item in group)]
        if proposal and _reads(new, together, columns, options, inspections):
            columns = new
            problems.append(Problem(message, data_yaml({"columns": new})))
            problems += _questions(proposal)
            good += [item[0] for item in group]
        elif good or len(others) + len(group) < len(failing):
            hint = _rename(new) if LABEL in new and TEXT in new else ""
            others += [(item[0], InputError(f"{item[1]}{hint}")) for item in group]
            messages.append(f"{message}{hint}")
        else:
            hint = _flatten(table, message) if table else ""
            if proposal and not hint:
                group_files = [item[0] for item in group]
                hint = _why_not(proposal, group_files, options, inspections)
            problems.append(Problem(message + hint))
    changes: dict[str, Any] = {"columns": columns} if columns else {}
    copies = _copies(good, replace(options, columns={**options.columns, **columns}), inspections)
    good = [file for file in good if file not in [copy for copy, _ in copies]]
    if (others or copies) and good:
        settings = {} if has_spans else _leave_out(converted, good)
        changes |= settings
        if settings:
            problems += [_left_out(converted, others, settings)] if others else []
            problems += [_left_out(converted, [copy], settings) for copy in copies]
        for file, error in [] if settings else [*others, *copies]:
            commands = () if is_url(converted.base) else (_move(converted, file),)
            problems.append(Problem(converted.message(str(error)), commands=commands))
    elif others:
        problems += map(Problem, messages)
    return Settled(tuple(good), changes, tuple(problems))


def _alike(
    failing: Sequence[tuple[SourceFile, InputError]], options: ReadOptions
) -> list[list[tuple[SourceFile, InputError, Table | None]]]:
    """Return the files in groups with the same columns, or without columns the same problem."""
    groups: dict[object, list[tuple[SourceFile, InputError, Table | None]]] = {}
    for file, error in failing:
        try:
            table = read_table(file.path, options)
        except InputError:
            table = None
        is_table = table is not None and bool(table.records)
        problem = _EXCERPT.sub("", str(error).replace(file.path, ""))
        key = tuple(table.names) if table and is_table else problem
        groups.setdefault(key, []).append((file, error, table if is_table else None))
    return sorted(groups.values(), key=len, reverse=True)


def _and_others(number: int, table: Table | None) -> str:
    """Return a clause about the other files of a group of `_alike`."""
    if number == 1:
        return ""
    more = "1 more file has" if number == 2 else f"{number - 1:,} more files have"
    return f" ({more} the same {'columns' if table else 'problem'})"


def _reads(
    columns: Mapping[str, str],
    files: Sequence[SourceFile],
    earlier: Mapping[str, str],
    options: ReadOptions,
    inspections: Inspections,
) -> bool:
    """Return whether all files can be read with these columns, which contradict no earlier ones."""
    if not columns or any(earlier.get(role, name) != name for role, name in columns.items()):
        return False
    attempt = replace(options, columns={**options.columns, **columns}, task=EACH_TASK)
    return not any(isinstance(item, InputError) for item in inspections.inspect(files, attempt))


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
    attempt = replace(options, columns={**options.columns, **columns}, task=EACH_TASK)
    inspected = inspections.inspect(files, attempt)
    errors = [str(item) for item in inspected if isinstance(item, InputError)]
    return (
        f"; with label `{columns[LABEL]}` and text `{columns[TEXT]}`: {errors[0]}" if errors else ""
    )


def _is_record(table: Table, columns: Mapping[str, str]) -> bool:
    """Return whether the names of the columns are a record, whose label other records have too.

    Settings with these names would lose it. A further header has the name of the text as well.
    """
    label, text = columns.get(LABEL, ""), columns.get(TEXT, "")
    alike = [one for one in table.records if label and one.get(label) == label]
    return any(one.get(text) != text for one in alike)


def _questions(proposal: Proposal) -> list[Problem]:
    found = []
    for role, candidates in ((TEXT, proposal.text), (LABEL, proposal.label)):
        if proposal.ambiguous(role):
            found.append(question(role, candidates))
    return found


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
) -> list[tuple[SourceFile, InputError]]:
    """Return the files that contain the same reviews as another one."""
    inspected = inspections.inspect(files, replace(options, task=EACH_TASK))
    layouts = [item.layout for item in inspected if isinstance(item, Inspection)]
    if len(layouts) < len(files):
        return []
    found = {
        copy.file: InputError(copy.message)
        for copy in find_copies(files, layouts)
        # No file of another span is left out. `choose_layouts` names these.
        if copy.file.span == copy.other.span
    }
    return list(found.items())


def _left_out(
    converted: Converted,
    others: Sequence[tuple[SourceFile, InputError]],
    settings: Mapping[str, Any],
) -> Problem:
    """Return the one problem of all files that a setting leaves out."""
    _, error = others[0]
    message = converted.message(str(error))
    if len(others) > 1:
        names = [converted.name(file.path) for file, _ in others[1:]]
        message += f"; nor can a run read {joined(names, _SHOWN)}"
    return Problem(message, data_yaml(settings))


def _leave_out(converted: Converted, good: Sequence[SourceFile]) -> dict[str, Any]:
    """Return settings in `data` that read the good files alone; empty if there are none."""
    kept = [converted.name(file.path) for file in good]
    # The files may be a sample of those in the folder.
    known = [one.name for one in converted.outputs]
    endings = Counter(name.partition(".")[2] for name in map(os.path.basename, kept))
    folders = {os.path.dirname(name) for name in kept}
    found = [f"**/*.{ending}" for ending in endings if ending]
    found += [f"{folder}/**" for folder in folders if folder] + kept[:1]
    if all(file.group == "all" for file in good):
        for glob in found:
            if {name for name in known if globs.matches(name, glob)} == set(kept):
                return {"splits": {"train": glob}}
        splits = propose_splits(kept, set(known) - set(kept))
        if splits:
            return {"splits": splits}
    return {}


def _move(converted: Converted, file: SourceFile) -> str:
    """Return the command that moves a file into another folder, where it has the same path."""
    path = converted.final(file.path)
    relative = os.path.dirname(relative_path(converted.folder, path))
    target = shlex.quote(os.path.join(f"{converted.base.rstrip('/')}-other", relative))
    return f"mkdir -p {target} && mv {shlex.quote(path)} {target}"


def _rename(columns: Mapping[str, str]) -> str:
    """Return a clause about a file that could be read if its columns had other names."""
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
    clauses = []
    for found, what in (
        (lists, "lists of texts, which no run reads; write a record for each text, as pandas' "
         "`explode` does"),
        (objects, "objects or lists, which no run reads; write each of their values as a column "
         "of its own, as pandas' `json_normalize` does"),
    ):  # fmt: skip
        shown = ", ".join(f"`{name}`" for name in found[:_SHOWN])
        clauses += [f"; {shown}: {what}"] if found else []
    return "".join(clauses)


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
