"""The classes of a task other than sentiment, chosen from the labels that a first pass finds."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Set
from typing import NamedTuple

from components.review_example_gen.found_labels import FoundLabels
from components.review_example_gen.stars import choose_stars
from core.errors import InputError
from preprocessing.labels import Labels
from preprocessing.reading.columns import Columns
from preprocessing.reading.files import HELD_OUT
from preprocessing.reading.labels import (
    YAML_WORDS,
    CollectedLabels,
    as_number,
    has_stars,
    same_numbers,
)
from preprocessing.reading.listing import counted, joined, listed, short
from preprocessing.reading.records import EACH_TASK, STARS_TASK, ReadOptions

_FEW = 20
"""Number of labels that are classes even if most of them have one line."""
_BOOLEANS = (("0", "false"), ("1", "true"))
"""The labels of a column whose type changes, as in files that different programs wrote."""
_SEPARATOR = re.compile(r"\s*[,;|#+&/]\s*")
"""What separates several labels in a field."""
_DECIMAL = re.compile(r"[-+]?\d+,\d+")
_REMEDY = "add lines, or map the labels in data.labels to another class or to null"
_NEXT_DAY = "or run again with the next day, whose window has it"
"""The remedy for a class of the newest span of a window that the older ones lack."""


class Classes(NamedTuple):
    """The classes of a task, and how they follow from the labels of the files."""

    labels: Labels
    label_map: Mapping[str, int | None]
    """Label -> index of its class, or None: left out; see `columns.Layout`."""
    notes: tuple[str, ...]
    """Lines for the user: the classes, the labels that are left out, and what may be a mistake."""


def choose_classes(
    found: FoundLabels,
    options: ReadOptions,
    columns: Collection[Columns | None],
    *,
    spans: int = 0,
) -> Classes:
    """Return the classes of the labels of an input.

    Args:
      found: the labels.
      options: the options for reading the files. Its task is not sentiment.
      columns: the columns of the files; None for a file without columns.
      spans: number of spans in the window that was read; 0 for an input without spans. Another
        window may have lines of a label that this one lacks. Of two or more spans the newest one is
        the test split, and the next window has it for training.

    Raises:
      InputError: the labels are no classes of this task, or only eval or test files have one.
    """
    classes = _find_classes(found, options, columns, spans)
    _refuse_held_out_labels(classes, found, spans)
    return classes


def _find_classes(
    found: FoundLabels, options: ReadOptions, columns: Collection[Columns | None], spans: int
) -> Classes:
    """Return the classes, which may be missing in the train files; see `choose_classes`.

    Raises:
      InputError: the labels are no classes of this task.
    """
    names = sorted({column.label for column in columns if column and column.label})
    column = f"the column {', '.join(map(repr, names))}" if names else "the files"
    if not found.lines:
        remedy = (
            "set data.columns.label and data.columns.text to the columns of the labels and the "
            "texts, and see data.format"
            if names
            else "write a single label, such as __label__refund, before each text"
        )
        raise InputError(f"data.labels: no line has a text and a label in {column}; {remedy}")
    if options.task == STARS_TASK:
        labels, label_map = choose_stars(
            found.totals, column, is_rating=all(has_stars(name) for name in names) and bool(names)
        )
        return Classes(labels, label_map, _notes_of_stars(labels, label_map, found))
    if options.task == EACH_TASK:
        return _each(found, column)
    return _mapped(found, options, column, spans)


def _each(found: FoundLabels, column: str) -> Classes:
    """Return a class for each label, sorted by number if all are numbers, and by text otherwise.

    Raises:
      InputError: there is only one label, or the labels are ids or texts.
    """
    labels = list(found.lines)
    lines = sum(found.totals.values())
    if len(labels) < 2:
        raise InputError(
            f"data.labels: each requires two or more labels, and all {lines:,} lines have "
            f"{listed(labels)} in {column}; set data.columns.label to another column"
        )
    is_full = len(labels) > CollectedLabels.MAX
    if is_full or (len(labels) > _FEW and 2 * len(labels) > lines):
        number = f"more than {CollectedLabels.MAX:,}" if is_full else f"{len(labels):,}"
        raise InputError(
            f"data.labels: each found {number} labels in {lines:,} lines in {column}, such as "
            f"{listed(labels, 3)}; these are ids or texts, set data.columns.label to another column"
        )
    numbers = {label: as_number(label) for label in labels}
    if all(number is not None for number in numbers.values()):
        labels.sort(key=lambda label: (numbers[label] or 0, label))
    notes = [_class_line(labels)]
    looks = _alike(labels)
    notes += [
        f"{counted(alike, found.totals)} {_difference(alike)}, and are different classes; to join "
        "them, map them to one class in data.labels"
        for alike in looks
    ]
    notes += [
        f"{counted(alike, found.totals)} are the same number, and are different classes; to join "
        "them, map them to one class in data.labels"
        for alike in same_numbers(labels)
        if sorted(alike) not in map(sorted, looks)
    ]
    notes += [
        f"{counted(alike, found.totals)} are a number and a boolean, and are different classes; "
        "to join them, map them to one class in data.labels"
        for alike in _BOOLEANS
        if set(alike) <= set(labels)
    ]
    notes += _combined_note(labels, found)
    label_map = {label: index for index, label in enumerate(labels)}
    return Classes(Labels(tuple(labels)), label_map, tuple(notes))


def _combined_note(labels: Iterable[str], found: FoundLabels) -> list[str]:
    """Return a line about labels that combine others, such as `joy,love`; none without them.

    A decimal number such as `4,5` is no combination.

    Args:
      labels: the labels that are classes of their own.
      found: all labels.
    """
    combined = [
        label
        for label in labels
        if not _DECIMAL.fullmatch(label)
        and len(parts := _SEPARATOR.split(label)) > 1
        and all(part in found.lines for part in parts)
    ]
    if not combined:
        return []
    return [
        f"{counted(combined, found.totals)} combine other labels, and are different classes, "
        "because a text has one class; map them to one of the others, or to null, in data.labels"
    ]


def _alike(labels: Iterable[str]) -> list[list[str]]:
    """Return the groups of different labels that look alike, such as `IT` and `it`."""
    by_look: dict[str, list[str]] = {}
    for label in labels:
        text = unicodedata.normalize("NFKC", label).casefold()
        visible = "".join(char for char in text if not _is_invisible(char))
        by_look.setdefault(" ".join(visible.split()), []).append(label)
    return [alike for alike in by_look.values() if len(alike) > 1]


def _is_invisible(char: str) -> bool:
    is_variation_selector = "\ufe00" <= char <= "\ufe0f"
    return is_variation_selector or unicodedata.category(char) == "Cf"


def _difference(alike: Iterable[str]) -> str:
    """Return a clause with the difference between labels that look alike, see `_alike`."""
    if len({label.lower() for label in alike}) == 1:
        return "differ only in case"
    return "differ only in blanks, case, invisible characters or forms of a letter"


def _mapped(found: FoundLabels, options: ReadOptions, column: str, spans: int) -> Classes:
    """Return the classes of a mapping, whose labels are in lower case.

    Args:
      found: the labels.
      options: the options with the mapping.
      column: the column of the labels, for a message.
      spans: see `choose_classes`.

    Raises:
      InputError: no line has one of the labels of the mapping, and there are no spans.
    """
    present = {label.lower() for label in found.lines}
    absent = _absent(options.label_map, present)
    if absent and not spans:
        others = [label for label in found.lines if label.lower() not in options.label_map]
        hint = f"; without a class: {listed(others)}" if others else ""
        raise InputError(
            f"data.labels names {listed(absent)}, which no line has in {column}{hint}; correct or "
            "remove it in data.labels"
        )
    notes = [_class_line(options.classes)]
    known = [label for label in found.lines if label.lower() in options.label_map]
    left_out = [label for label in known if options.label_map[label.lower()] is None]
    if left_out:
        notes.append(f"left out: {counted(left_out, found.totals)}")
    own = {name.lower() for name in options.classes}
    notes += _combined_note([label for label in known if label.lower() in own], found)
    if absent:
        notes.append(f"data.labels names {listed(absent)}, which no line of this window has")
    others = [label for label in found.lines if label.lower() not in options.label_map]
    if others:
        notes.append(
            f"rejected, because data.labels does not name them: {counted(others, found.totals)}"
        )
    return Classes(Labels(options.classes), options.label_map, tuple(notes))


def _absent(label_map: Collection[str], present: Set[str]) -> list[str]:
    """Return the labels of a mapping that no line has.

    YAML reads `yes` and `on` as `true`, so a mapping of one of them contains all three, and files
    have one.
    """
    words = {word for same in YAML_WORDS.values() if present & set(same) for word in same}
    return [label for label in label_map if label not in present | words]


def _notes_of_stars(
    labels: Labels, label_map: Mapping[str, int | None], found: FoundLabels
) -> tuple[str, ...]:
    others = [label for label in found.lines if label.lower() not in label_map]
    if not others:
        return (_class_line(labels.names),)
    no_stars = f"rejected, because they are not on the scale: {counted(others, found.totals)}"
    return _class_line(labels.names), no_stars


def _refuse_held_out_labels(classes: Classes, found: FoundLabels, spans: int) -> None:
    """Check that the train files have every class that the eval and test files have.

    Args:
      classes: the classes.
      found: the labels.
      spans: see `choose_classes`.

    Raises:
      InputError: a class has lines only in eval and test files.
    """
    in_train: Counter[int] = Counter()
    held_out: dict[str, Counter[int]] = {group: Counter() for group in HELD_OUT}
    for label, groups in found.lines.items():
        name = label if label in classes.label_map else label.lower()
        index = classes.label_map.get(name)
        if index is not None:
            for group, lines in groups.items():
                held_out.get(group, in_train)[index] += lines
    named = [(f"the {group} files", numbers) for group, numbers in held_out.items()]
    newest = held_out["test"] if spans > 1 else {}
    _refuse_missing(classes.labels, in_train, named, newest)


def check_classes(
    labels: Labels,
    examples: Mapping[str, Mapping[int, int]],
    named: Collection[str],
    over_max_examples: int,
    *,
    spans: int = 0,
) -> tuple[str, ...]:
    """Check that each class is in the train split, and has an Example for each split.

    Args:
      labels: the classes.
      examples: split -> label -> number of its Examples.
      named: the splits with files of their own. The others are made of the files of train.
      over_max_examples: number of lines that are left out because of data.max_examples.
      spans: see `choose_classes`.

    Returns:
      A line for each split of eval and test without some of the classes.

    Raises:
      InputError: a class has no Example in the train split, or too few to be in every split.
    """
    remedy = f"increase data.max_examples, {_REMEDY}" if over_max_examples else _REMEDY
    held_out = [(f"the {split} split", examples.get(split, {})) for split in HELD_OUT]
    hashed = ["train", *(split for split in HELD_OUT if split not in named)]
    totals = {
        name: sum(examples.get(split, {}).get(label, 0) for split in hashed)
        for label, name in enumerate(labels.names)
    }
    few = [name for name, total in totals.items() if total < len(hashed)]
    newest = examples.get("test", {}) if spans > 1 else {}
    if few and len(hashed) > 1:
        remedy = _with_next_day(remedy, map(labels.names.index, few), newest)
        raise InputError(
            f"data.labels: too few lines of {counted(few, totals)} to be in each of the splits "
            f"{', '.join(hashed)}, for which a class requires {len(hashed)} or more; {remedy}"
        )
    _refuse_missing(labels, examples.get("train", {}), held_out, newest, remedy)
    notes = []
    for split, numbers in held_out:
        names = [name for label, name in enumerate(labels.names) if not numbers.get(label)]
        if names and any(numbers.values()):
            notes.append(
                f"{split} has no Example of {listed(names)}; its metrics say nothing about "
                f"{'this class' if len(names) == 1 else 'these classes'}"
            )
    return tuple(notes)


def _refuse_missing(
    labels: Labels,
    in_train: Mapping[int, int],
    held_out: Collection[tuple[str, Mapping[int, int]]],
    newest: Mapping[int, int],
    remedy: str = _REMEDY,
) -> None:
    """Check that the train split has every class.

    Args:
      labels: the classes.
      in_train: label -> number of its lines for training.
      held_out: (name, label -> number of its lines) of the other splits.
      newest: label -> number of its lines in the newest span, which the next window has for
        training; empty without a window of spans.
      remedy: the end of the message.

    Raises:
      InputError: it lacks a class.
    """
    missing = [label for label in range(labels.number) if not in_train.get(label)]
    if not missing:
        return
    parts = []
    for label in missing:
        where = [f"{n[label]:,} in {name}" for name, n in held_out if n.get(label)]
        in_brackets = f" ({', '.join(where)})" if where else ""
        parts.append(f"{short(labels.names[label])}{in_brackets}")
    remedy = _with_next_day(remedy, missing, newest)
    raise InputError(f"data.labels: no line for training has the class {joined(parts)}; {remedy}")


def _with_next_day(remedy: str, missing: Iterable[int], newest: Mapping[int, int]) -> str:
    """Return a remedy, with _NEXT_DAY if the newest span has all classes that are missing.

    Args:
      remedy: the remedy.
      missing: the labels of the classes.
      newest: see `_refuse_missing`.
    """
    return f"{remedy}, {_NEXT_DAY}" if all(map(newest.get, missing)) else remedy


def _class_line(names: Collection[str]) -> str:
    return f"{len(names):,}: {listed(names)}"
