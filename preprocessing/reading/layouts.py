"""Decide how to read the files of an input, for all files together, and describe it.

The names of columns and the scale of labels are properties of the input, not of a file. In sorted
data, one file may contain only the labels 1 and 2, and only another file shows that they are stars.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import takewhile

from core.errors import InputError
from preprocessing.reading.columns import Layout, NoReviews
from preprocessing.reading.copies import refuse_copies
from preprocessing.reading.detect import Inspection, inspect
from preprocessing.reading.files import SourceFile
from preprocessing.reading.globs import compile_glob
from preprocessing.reading.labels import NEUTRAL, SCALES, TWO_NUMBERS, WORDS
from preprocessing.reading.records import ReadOptions

_FILES_AT_ONCE = 16
"""Files that are inspected at the same time. Opening a remote file takes tens of milliseconds."""
_MOST_LINES = 4
_FORMATS = {"fasttext": "fastText", "csv": "CSV", "jsonl": "JSON lines", "parquet": "Parquet"}
_SCALES = {"stars": "1 to 5", "zero_one": "0 and 1", "one_two": "1 and 2", WORDS: "words"}
_SETTING = f"set data.label_scale to one of {', '.join(SCALES)}"


def decide_layouts(files: Sequence[SourceFile], options: ReadOptions) -> list[Layout]:
    """Return the layout of each file of an input.

    Raises:
        InputError: see `detect.inspect`. If labels are required, also: the labels fit no scale, or
            fit several scales with opposite meanings; a setting has no effect; or two files of a
            group contain the same reviews.
    """
    with ThreadPoolExecutor(_FILES_AT_ONCE) as pool:
        inspections = list(pool.map(lambda file: _inspect(file, options), files))
        found = [item for item in inspections if isinstance(item, Inspection)]
        for file, item in zip(files, inspections, strict=True):
            if isinstance(item, NoReviews):
                read = {other.path for other in found}
                raise InputError(f"{item}{_leave_out(file, files, read)}") from item
        layouts = _with_common_titles(_with_scale(found, options))
        if options.labels == "required":
            _refuse_settings_without_effect(found, layouts, options)
            refuse_copies(files, layouts, pool)
    return layouts


def _inspect(file: SourceFile, options: ReadOptions) -> Inspection | NoReviews:
    try:
        return inspect(file.path, options)
    except NoReviews as error:
        return error


def _leave_out(file: SourceFile, files: Sequence[SourceFile], read: set[str]) -> str:
    """Return how to leave out a file that is no reviews; empty if no file is reviews.

    Args:
      file: the file.
      files: all files of the input.
      read: the paths of the files that are reviews.
    """
    of_group = [other.path for other in files if other.group == file.group]
    wanted = [path for path in of_group if path in read]
    if not wanted:
        return ""
    first, name = "; if it contains no reviews, ", os.path.basename(wanted[0])
    suffixes = ["." + ".".join(name.split(".")[number:]) for number in (-1, -2)]
    names = [os.path.basename(path) for path in wanted]
    same = takewhile(lambda letters: len(set(letters)) == 1, zip(*names, strict=False))
    beginning = "".join(letters[0] for letters in same)
    for glob in (f"**/{name}", *(f"**/*{suffix}" for suffix in suffixes), f"**/{beginning}*"):
        matches = compile_glob(glob).fullmatch
        if [path for path in of_group if matches(path)] == wanted:
            split = "train" if file.group == "all" else file.group
            return f"{first}leave it out: set data.splits={{{split}: '{glob}'}}"
    return f"{first}move it out of the folder"


def detect_format(path: str, options: ReadOptions) -> Layout:
    """Return the layout of the only file of an input.

    Raises:
        InputError: see `decide_layouts`.
    """
    return _with_scale([inspect(path, options)], options)[0]


def _refuse_settings_without_effect(
    found: Sequence[Inspection], layouts: Sequence[Layout], options: ReadOptions
) -> None:
    for name, column in options.columns.items():
        if all(layout.columns is None for layout in layouts):
            raise InputError(
                f"data.columns.{name} is '{column}', but every file is fastText, which has no "
                "columns: remove the setting, or set data.format"
            )
    # Labels behind the inspected ones may need the settings of labels.
    if not all(item.complete for item in found):
        return
    labels = {number for item in found for number in item.numbers or ()}
    inspected = all(item.numbers is not None for item in found)
    if options.label_scale != "auto" and inspected and not labels - {NEUTRAL}:
        raise InputError(
            f"data.label_scale is '{options.label_scale}', but no label is a number from "
            "0 to 5: remove the setting"
        )
    scales = {layout.label_scale for layout in layouts}
    if options.neutral != "leave_out" and NEUTRAL not in labels and scales <= {*TWO_NUMBERS}:
        raise InputError(
            f"data.neutral is '{options.neutral}', but no label on the scale "
            f"{' or '.join(sorted(scales))} is neutral: remove the setting"
        )


def _with_scale(found: Sequence[Inspection], options: ReadOptions) -> list[Layout]:
    if options.label_scale != "auto":
        return [replace(item.layout, label_scale=options.label_scale) for item in found]
    # fastText has no column of labels, so its labels may have a scale of their own.
    scales = {
        is_fasttext: _find_scale([item for item in found if _is_fasttext(item) == is_fasttext])
        for is_fasttext in (True, False)
    }
    return [
        item.layout
        if item.numbers is None
        # Words mean the same on every scale, so no number can contradict them.
        else replace(item.layout, label_scale=scale, scale_is_guessed=scale != WORDS)
        for item in found
        for scale in [scales[_is_fasttext(item)]]
    ]


def _is_fasttext(item: Inspection) -> bool:
    return item.layout.format == "fasttext"


def _find_scale(found: Sequence[Inspection]) -> str:
    """Return the scale that fits all inspected labels.

    A 0 means zero_one. Without a 0, a 4 or 5 means stars. So does a 3, unless there is a 2, which
    means one_two without a 3. If all numbers are 1, all three scales fit, with opposite meanings.
    fastText and CSV files without a header are an exception: they come from one family of datasets,
    whose labels are 1 and 2. Without any number the scale is WORDS.
    """
    first: dict[int, Inspection] = {}  # number -> the first file that has it
    for item in found:
        for number in (item.numbers or frozenset()) - {NEUTRAL}:
            first.setdefault(number, item)
    if not first:
        return WORDS
    if 0 in first:
        if max(first) > 1:
            raise InputError(_no_scale(first, 0, max(first)))
        return "zero_one"
    if max(first) == 3 and 2 in first:
        raise InputError(
            f"{first[3].path} has the label 3, and no inspected label is 4 or 5: 2 is negative on "
            f"the scale stars, and positive on one_two, which has no 3; {_SETTING}"
        )
    if max(first) > 2:
        return "stars"
    stars = [item for item in found if item.layout.label_scale == "stars" and item.numbers is None]
    if stars:
        column = stars[0].layout.columns
        raise InputError(
            f"{first[max(first)].path} has no label above {max(first)}, and {stars[0].path} has "
            f"stars in its column {column.label if column else 'label'}: 2 is positive on the "
            f"scale one_two and negative on stars; {_SETTING}, or read the files in two runs"
        )
    if 2 in first or all(_counts_from_one(item.layout) for item in found if item.numbers):
        return "one_two"
    raise InputError(
        f"{first[1].path}: every inspected label is 1, which is positive on the scale zero_one and "
        f"negative on one_two and stars: {_SETTING}"
    )


def _counts_from_one(layout: Layout) -> bool:
    return layout.format == "fasttext" or (layout.format == "csv" and layout.header is None)


def _no_scale(first: dict[int, Inspection], low: int, high: int) -> str:
    one, other = first[low].path, first[high].path
    if one == other:
        return f"{one} has the labels {low} and {high}, but no scale has both: {_SETTING}"
    return (
        f"{one} has the label {low} and {other} has the label {high}, but no scale has both: "
        f"{_SETTING}, or read the files in two runs"
    )


def _with_common_titles(layouts: list[Layout]) -> list[Layout]:
    """Set the title column of JSON lines files without one to that of the other files.

    The title is an optional key, which the head of a file may lack.
    """
    titles = {
        (layout.columns.label, layout.columns.text): layout.columns.title
        for layout in layouts
        if layout.format == "jsonl" and layout.columns and layout.columns.title
    }
    return [_with_title(layout, titles) for layout in layouts]


def _with_title(layout: Layout, titles: dict[tuple[str | None, str], str]) -> Layout:
    columns = layout.columns
    if layout.format != "jsonl" or columns is None or columns.title is not None:
        return layout
    title = titles.get((columns.label, columns.text))
    return replace(layout, columns=columns._replace(title=title))


def describe(layouts: Iterable[Layout]) -> list[str]:
    """Return a line for each way in which files are read, the most frequent one first.

    Args:
      layouts: the layout of each file.
    """
    ways = Counter(map(_way, layouts)).most_common()
    if len(ways) == 1:
        return [ways[0][0]]
    lines = [f"{way} ({count} {'file' if count == 1 else 'files'})" for way, count in ways]
    if len(lines) > _MOST_LINES:
        lines[_MOST_LINES - 1 :] = [f"and in {len(lines) - _MOST_LINES + 1} other ways"]
    return lines


def _way(layout: Layout) -> str:
    """Return a line, such as ``JSON lines: label `stars` (1 to 5), title -, text `body` ``."""
    format = _FORMATS.get(layout.format, layout.format)
    scale = f"({_SCALES[layout.label_scale]})"
    if layout.columns is None:
        # Without labels, fastText is plain text.
        return f"{format}: label {scale}" if layout.labels == "required" else "lines of text"
    format += layout.dialect.with_separator
    if layout.format == "csv" and layout.header is None:
        title = ", title" if layout.columns.title else ""
        return f"{format} without a header: label {scale}{title}, text"
    label, title, text = (f"`{name}`" if name else "-" for name in layout.columns[:3])
    labels = f"label {label} {scale}, " if layout.labels == "required" else ""
    further = "".join(f", `{name}`" for name in layout.columns.further if name)
    unused = ", ".join(f"`{name}`" for name in layout.unused)
    return f"{format}: {labels}title {title}, text {text}{further}" + (
        f"; not read: {unused}" if unused else ""
    )
