"""Decide how to read the files of an input, for all files together, and describe it.

The names of columns and the scale of labels are properties of the input, not of a file. In sorted
data, one file may contain only the labels 1 and 2, and only another file shows that they are stars.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import PurePath

from core.errors import InputError
from preprocessing.reading.columns import Layout, NoReviews
from preprocessing.reading.copies import refuse_copies
from preprocessing.reading.detect import Inspection, inspect
from preprocessing.reading.files import SourceFile
from preprocessing.reading.globs import matches
from preprocessing.reading.labels import KNOWN_WORDS, NUMBERS, STARS, WORDS
from preprocessing.reading.records import ReadOptions, printable

_FILES_AT_ONCE = 16
"""Files that are inspected at the same time. Opening a remote file takes tens of milliseconds."""
_MAX_LINES = 4
_FORMATS = {"fasttext": "fastText", "csv": "CSV", "jsonl": "JSON lines", "parquet": "Parquet"}
_MAX_LABELS = 5
_MAX_CHARACTERS = 30


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
                how = _leave_out(file, files, {other.path for other in found}, options)
                raise InputError(f"{item}{how}") from item
        layouts = _with_scale(found, options)
        if options.labels == "required":
            _refuse_settings_without_effect(found, layouts, options)
            refuse_copies(files, layouts, pool)
    return layouts


def _inspect(file: SourceFile, options: ReadOptions) -> Inspection | NoReviews:
    try:
        return inspect(file.path, options)
    except NoReviews as error:
        return error


def _leave_out(
    file: SourceFile, files: Sequence[SourceFile], read: set[str], options: ReadOptions
) -> str:
    """Return how to leave out a file that is no reviews; empty if no file is reviews.

    Args:
      file: the file.
      files: all files of the input.
      read: the paths of the files that are reviews.
      options: without required labels, as in batch scoring, there is no `data.splits`.
    """
    of_group = [other.path for other in files if other.group == file.group]
    wanted = [path for path in of_group if path in read]
    if not wanted:
        return ""
    split = "train" if file.group == "all" else file.group
    how = "; if it contains no reviews, leave it out: "
    name = PurePath(wanted[0])
    for glob in (f"**/{name.name}", f"**/*{name.suffix}"):
        if options.labels == "required" and wanted == [p for p in of_group if matches(p, glob)]:
            return f"{how}set data.splits={{{split}: '{glob}'}}"
    return f"{how}move it to another folder"


def detect_format(path: str, options: ReadOptions) -> Layout:
    """Return the layout of the only file of an input.

    Raises:
        InputError: see `decide_layouts`.
    """
    return _with_scale([inspect(path, options)], options)[0]


def _refuse_settings_without_effect(
    found: Sequence[Inspection], layouts: Sequence[Layout], options: ReadOptions
) -> None:
    if options.columns and all(layout.columns is None for layout in layouts):
        name, column = next(iter(options.columns.items()))
        raise InputError(
            f"data.columns.{name} is '{column}', but every file is fastText, which has no "
            "columns: remove the setting, or set data.format"
        )
    labels = {label for item in found for label in item.labels or ()}
    # Labels behind the inspected ones may be in the setting.
    is_complete = all(item.complete for item in found)
    if options.label_map and is_complete and not labels & options.label_map.keys():
        raise InputError(
            "data.labels has none of the labels of the files, which are "
            f"{_shown(sorted(labels))}: set other labels, or remove the setting"
        )


def _with_scale(found: Sequence[Inspection], options: ReadOptions) -> list[Layout]:
    if options.label_map:
        return [replace(item.layout, label_map=options.label_map) for item in found]
    # fastText has no column of labels, so its labels may have a scale of their own.
    scales = {
        is_fasttext: _find_scale([item for item in found if _is_fasttext(item) == is_fasttext])
        for is_fasttext in (True, False)
    }
    return [
        item.layout
        if item.labels is None
        # Words mean the same on every scale, so no number can contradict them.
        else replace(item.layout, label_scale=scale, scale_is_guessed=scale != WORDS)
        for item in found
        for scale in [scales[_is_fasttext(item)]]
    ]


def _is_fasttext(item: Inspection) -> bool:
    return item.layout.format == "fasttext"


def _find_scale(found: Sequence[Inspection]) -> str:
    """Return the scale that fits all inspected labels.

    A -1 means -1 to 1. A 0 means 0 and 1, or 0 to 4 if a file also has a 4. Without a 0, a 4 or 5
    means stars. So does a 3, unless there is a 2. A 2 means 1 and 2, unless a column of another
    file has stars. If all numbers are 1, several scales fit, with opposite meanings. fastText and
    CSV files without a header are an exception: they come from one family of datasets, whose labels
    are 1 and 2. Without any number the labels are words, at least one of which must be known.
    """
    with_labels = [item for item in found if item.labels]
    seen = {label for item in with_labels for label in item.labels or ()}
    numbers = sorted(int(label) for label in seen if label in NUMBERS)
    if not numbers:
        if seen and not seen & KNOWN_WORDS.keys():
            raise InputError(_unknown_labels(with_labels))
        return WORDS
    least, most = numbers[0], numbers[-1]
    if least == -1 and most <= 1:
        return "-1 to 1"
    if least == 0 and most <= 1:
        return "0 and 1"
    if least == 0 and most == 4 and any({"0", "4"} <= (item.labels or set()) for item in found):
        return "0 to 4"
    if least >= 1 and most > 2 and not (most == 3 and 2 in numbers):
        return STARS
    stars = next((item.path for item in found if item.labels is None), None)
    counts_from_one = most == 2 or all(_counts_from_one(item.layout) for item in with_labels)
    if least >= 1 and most <= 2 and counts_from_one and not stars:
        return "1 and 2"
    raise InputError(_unknown_labels(with_labels, stars))


def _unknown_labels(found: Sequence[Inspection], stars: str | None = None) -> str:
    """Return the message for labels without a certain meaning, beside those of a file of stars."""
    labels = sorted({label for item in found for label in item.labels or ()})
    labels = sorted((n for n in labels if re.fullmatch("-?[0-9]{1,3}", n)), key=int) or labels
    with_these = [
        next(item.path for item in found if item.labels and label in item.labels)
        for label in (labels[0], labels[-1])
    ]
    meanings = ", ".join(f"{_short(label)}: ?" for label in labels[:_MAX_LABELS])
    columns = any(item.layout.columns for item in found)
    return (
        f"{' and '.join(dict.fromkeys(with_these))}: the meaning of the labels {_shown(labels)} is "
        f"not certain{f' beside the stars of {stars}' if stars else ''}: set "
        f"data.labels={{{meanings}}}, where 0 is negative, 1 is positive and null is left out"
        + (", or data.columns.label to the column of the labels" if columns else "")
    )


def _shown(labels: Sequence[str]) -> str:
    more = f" and {len(labels) - _MAX_LABELS} more" if len(labels) > _MAX_LABELS else ""
    return (", ".join(map(_short, labels[:_MAX_LABELS])) or "none") + more


def _short(label: str) -> str:
    return printable(label)[:_MAX_CHARACTERS]


def _counts_from_one(layout: Layout) -> bool:
    return layout.format == "fasttext" or (layout.format == "csv" and layout.header is None)


def describe(layouts: Iterable[Layout]) -> list[str]:
    """Return a line for each way in which files are read, the most frequent one first.

    Args:
      layouts: the layout of each file.
    """
    ways = Counter(map(_way, layouts)).most_common()
    if len(ways) == 1:
        return [ways[0][0]]
    lines = [f"{way} ({count} {'file' if count == 1 else 'files'})" for way, count in ways]
    if len(lines) > _MAX_LINES:
        lines[_MAX_LINES - 1 :] = [f"and in {len(lines) - _MAX_LINES + 1} other ways"]
    return lines


def _way(layout: Layout) -> str:
    """Return a line, such as ``JSON lines: label `stars` (1 to 5), title -, text `body` ``."""
    if layout.format == "empty":
        return "empty"
    format = _FORMATS[layout.format]
    scale = f"({'data.labels' if layout.label_map else layout.label_scale})"
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
