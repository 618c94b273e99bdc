"""Find settings that settle what is missing. Each one is tried with the reader of a run."""

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
from pipeline.data_check.attempts import Attempt, Attempts
from pipeline.data_check.columns import Candidate, Proposal, nested_columns, propose
from pipeline.data_check.converted import Converted
from pipeline.data_check.found import Choice, Problem
from pipeline.data_check.inspections import Inspections
from pipeline.data_check.settings_file import as_yaml
from pipeline.label_setting import task_options
from preprocessing.reading import globs
from preprocessing.reading.columns import LABEL, TEXT
from preprocessing.reading.copies import find_copies
from preprocessing.reading.detect import Inspection
from preprocessing.reading.files import HELD_OUT, SourceFile, relative_path
from preprocessing.reading.labels import NEUTRAL, numbers_with_names
from preprocessing.reading.listing import joined
from preprocessing.reading.look import Table, read_table
from preprocessing.reading.records import EACH_TASK, SENTIMENT_TASK, STARS_TASK, ReadOptions

_SHOWN = 4
_BAD = {"bad", "negative", "neg", "no", "false", "dislike", "schlecht", "unsatisfied", "down"}
_GOOD = {"good", "positive", "pos", "yes", "true", "like", "gut", "satisfied", "up"}
_NEITHER = {"neutral", "offered", "unoffered", "mixed", "average", "ok", ""}
_NEITHER |= {
    "unsup",
    "unlabeled",
    "unlabelled",
    "irrelevant",
    "unknown",
    "unrated",
    "none",
    "n/a",
    "other",
    "unclear",
    "unsure",
}
"""Words whose sentiment is proposed, and those that are left out; the user decides."""


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
    files, base = converted.files, converted.base
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
    for group in _alike(failing, options):
        _, error, table = group[0]
        message = converted.message(str(error)) + _and_others(len(group), table)
        proposal = propose(table, options) if table else None
        found = proposal.columns() if proposal else {}
        new = {role: name for role, name in found.items() if options.columns.get(role) != name}
        together = [*good, *(item[0] for item in group)]
        if proposal and _reads(new, together, columns, options, inspections):
            columns = new
            problems.append(Problem(message, as_yaml({"data": {"columns": new}})))
            problems += _questions(proposal)
            good += [item[0] for item in group]
        elif good or len(others) + len(group) < len(failing):
            hint = _rename(new) if LABEL in new and TEXT in new else ""
            others += [(item[0], InputError(f"{item[1]}{hint}")) for item in group]
        else:
            problems.append(Problem(message + (_flatten(table, message) if table else "")))
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
            commands = () if is_url(base) else (_move(converted, base, file),)
            problems.append(Problem(converted.message(str(error)), commands=commands))
    elif others:
        problems += [Problem(converted.message(str(error))) for _, error in others]
    return Settled(tuple(good), changes, tuple(problems))


def settle_labels(attempts: Attempts, current: Attempt, message: str) -> Settled:
    """Find a value of `data.labels` with which the labels are classes.

    Args:
      attempts: the attempts with the files.
      current: the attempt with the settings, which cannot be used.
      message: the problem.
    """
    options = current.options
    choices: list[tuple[Any, str]] = []
    names = [label.name for label in current.labels()]
    corrected = _corrected_mapping(attempts, options, names)
    if corrected:
        choices.append((corrected, "the classes of data.labels; null leaves a label out"))
    in_train = _without_held_out(attempts, current)
    if in_train:
        choices.append((in_train, "the classes of the train files; null leaves a label out"))
    polarity = _polarity(names)
    if polarity:
        choices.append((polarity, "a guess at the sentiment of these words: 1 is positive"))
    numbers = _named_numbers(current)
    if numbers:
        choices.append((numbers, "the names that one of the files has for these numbers"))
    stars = attempts.with_task(options, STARS_TASK)
    each = attempts.with_task(options, EACH_TASK)
    sentiment = attempts.with_task(options, SENTIMENT_TASK)
    has_names = any(layout.class_names for layout in each.layouts)
    if has_names and not each.error and not numbers:
        choices.append((EACH_TASK, f"{len(each.names)} classes: {joined(each.names, _SHOWN)}"))
    if not stars.error and not has_names:
        choices.append(
            (STARS_TASK, f"{len(stars.names)} ordered classes: {joined(stars.names, _SHOWN)}")
        )
    if each.error and not each.is_certain:
        choices.append((EACH_TASK, "more classes than the one at the beginning of a sorted file"))
    if not each.error and each.names != stars.names and not has_names:
        choices.append((EACH_TASK, f"{len(each.names)} classes: {joined(each.names, _SHOWN)}"))
    if not sentiment.error and options.task != SENTIMENT_TASK:
        choices.append(({}, "negative and positive"))
    shown = tuple(Choice(as_yaml({"data": {"labels": value}}), text) for value, text in choices)
    if not choices:
        reasons = [] if options.task == EACH_TASK else [f"{stars.error}", f"{each.error}"]
        return Settled((), {}, (Problem("; ".join(dict.fromkeys([message, *reasons]))),))
    problem = Problem(message, shown[0].settings, choices=shown)
    return Settled((), {"labels": choices[0][0]}, (problem,))


def _corrected_mapping(
    attempts: Attempts, options: ReadOptions, names: Sequence[str]
) -> dict[str, str | None]:
    """Return the mapping of `data.labels` for the labels of the files.

    It leaves out the labels that the mapping does not name. It lacks those that no line has, if
    they are an error. It is empty if there is no mapping, or if the labels are no classes with it.

    Args:
      attempts: the attempts with the files.
      options: the options with the mapping.
      names: the labels of the files.
    """
    present = dict.fromkeys(name.lower() for name in names)
    used = [label for label in options.label_map if label in present]
    # The order of the classes is that of the mapping.
    for labels in ([*options.label_map, *present], [*used, *present]) if used else ():
        indices = {label: options.label_map.get(label) for label in labels}
        found = {
            label: None if index is None else options.classes[index]
            for label, index in indices.items()
        }
        if len({name for name in found.values() if name}) < 2:
            continue
        mapped = task_options(found)
        tried = replace(
            options, task=mapped.task, classes=mapped.classes, label_map=mapped.label_map
        )
        if not attempts.attempt(tried).error:
            return found
    return {}


def _without_held_out(attempts: Attempts, current: Attempt) -> dict[str, str | None]:
    """Return the mapping of `data.labels` that leaves out labels of only eval and test files.

    It is empty if the task is another one than a class for each label, or if the labels of the
    train files are no classes either.

    Args:
      attempts: the attempts with the files.
      current: the attempt with the settings.
    """
    if current.options.task != EACH_TASK or current.found is None:
        return {}
    if any(layout.class_names for layout in current.layouts):
        return {}  # a mapping applies to the numbers
    names = current.found.lines
    kept = [name for name, groups in names.items() if not set(groups) <= set(HELD_OUT)]
    # A mapping does not distinguish labels that differ only in case.
    if not 1 < len(kept) < len(names) or len({name.lower() for name in names}) < len(names):
        return {}
    found = {name: name if name in kept else None for name in names}
    mapped = task_options({name.lower(): class_name for name, class_name in found.items()})
    options = replace(
        current.options, task=mapped.task, classes=mapped.classes, label_map=mapped.label_map
    )
    return {} if attempts.attempt(options).error else found


def leave_out_rare(attempt: Attempt, totals: Mapping[int, int], least: int) -> dict[str, Any]:
    """Return `data.labels` that leaves out the classes with few lines.

    It is empty if it would leave out no class, or fewer than two would be left. A mapping does not
    distinguish labels that differ only in case. They become one class, with the name of the most
    frequent one.

    Args:
      attempt: an attempt with a class for each label.
      totals: index of a class -> number of its lines.
      least: the number of lines that a class requires.
    """
    numbered = {layout.class_names for layout in attempt.layouts}
    if len(numbered) > 1:
        return {}  # a mapping applies to the numbers of one file and to the names of another one
    alike: dict[str, list[int]] = {}
    for index, name in enumerate(attempt.names):
        alike.setdefault(name.lower(), []).append(index)
    found: dict[str, str | None] = {}
    for indices in alike.values():
        first = max(indices, key=lambda index: totals.get(index, 0))
        is_kept = sum(totals.get(index, 0) for index in indices) >= least
        for index in indices if any(numbered) else [first]:
            found[_label_in_file(attempt, index)] = attempt.names[first] if is_kept else None
    kept = {name for name in found.values() if name}
    # If all classes are kept, the problem is another one.
    return found if 1 < len(kept) < len(attempt.names) else {}


def _label_in_file(attempt: Attempt, index: int) -> str:
    """Return the label of a class as a mapping names it: its name, or its number in the files."""
    name = attempt.names[index]
    names = attempt.layouts[0].class_names
    return str(names.index(name)) if names else name


def _copies(
    files: Sequence[SourceFile], options: ReadOptions, inspections: Inspections
) -> list[tuple[SourceFile, InputError]]:
    """Return the files that contain the same reviews as another one."""
    inspected = inspections.inspect(files, replace(options, task=EACH_TASK))
    layouts = [item.layout for item in inspected if isinstance(item, Inspection)]
    if len(layouts) < len(files):
        return []
    found = {file: InputError(message) for file, message in find_copies(files, layouts)}
    return list(found.items())


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
    choices = tuple(
        Choice(as_yaml({"data": {"columns": {role: one.name}}}), one.example) for one in shown
    )
    names = ", ".join(f"`{one.name}`" for one in shown)
    return Problem(
        f"{len(shown)} columns may be the {role}: {names}; choose one",
        choices[0].settings,
        choices=choices,
        is_blocking=is_blocking,
    )


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
    return Problem(message, as_yaml({"data": settings}))


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
    return {}


def _move(converted: Converted, base: str, file: SourceFile) -> str:
    """Return the command that moves a file into another folder, where it has the same path."""
    path = converted.final(file.path)
    relative = os.path.dirname(relative_path(converted.folder, path))
    target = shlex.quote(os.path.join(f"{base.rstrip('/')}-other", relative))
    return f"mkdir -p {target} && mv {shlex.quote(path)} {target}"


def _polarity(labels: Sequence[str]) -> dict[str, int | None]:
    """Return the sentiment of labels that are known words; empty if one is not."""
    lower = [label.lower() for label in labels]
    has_both = bool(_BAD.intersection(lower)) and bool(_GOOD.intersection(lower))
    if not has_both or not set(lower) <= _BAD | _GOOD | _NEITHER:
        return {}
    ordered = sorted(lower, key=lambda label: (label in _GOOD, label in _NEITHER))
    return {
        label: None if label in _NEITHER else int(label in _GOOD)
        for label in dict.fromkeys(ordered)
    }


def _named_numbers(attempt: Attempt) -> dict[str, int | None]:
    """Return the sentiment of the numbers that only some of the files have names for, or nothing.

    Args:
      attempt: an attempt whose labels have no certain meaning.
    """
    named = {layout.class_names for layout in attempt.layouts if layout.columns}
    if attempt.options.task != SENTIMENT_TASK or len(named) != 2 or () not in named:
        return {}
    meanings = numbers_with_names(max(named))
    return {number: None if one == NEUTRAL else one for number, one in meanings.items()}


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
    if not names:
        return ""
    shown = ", ".join(f"`{name}`" for name in names[:_SHOWN])
    return (
        f"; {shown}: objects or lists, which no run reads; write each of their values as a column "
        "of its own, as pandas' `json_normalize` does"
    )


def _and_others(number: int, table: Table | None) -> str:
    """Return a clause about the other files of a group of `_alike`."""
    if number == 1:
        return ""
    more = "1 more file has" if number == 2 else f"{number - 1:,} more files have"
    return f" ({more} the same {'columns' if table else 'problem'})"
