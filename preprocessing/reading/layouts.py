"""Choose the layouts of all files of an input together, and describe them.

The names of columns and the scale of labels are properties of the input, not of a file. In sorted
data, one file may contain only the labels 1 and 2, and only another file indicates that these are
stars. Only other files show that the -1 in a file without other labels marks a missing label, as in
the unlabelled splits on Hugging Face. Two files with the same reviews are refused, whatever their
formats and the order of the reviews.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from core.errors import InputError
from preprocessing import features
from preprocessing.reading.columns import (
    COMMAS,
    SEPARATORS,
    Columns,
    Layout,
    MissingColumnsError,
)
from preprocessing.reading.copies import find_copies
from preprocessing.reading.detect import Inspection, inspect
from preprocessing.reading.file_format import UnknownFormatError
from preprocessing.reading.files import FILES_AT_ONCE, SourceFile
from preprocessing.reading.labels import (
    KNOWN_WORDS,
    NO_LABEL,
    NUMBERS,
    SCALES,
    STARS,
    WORDS,
    as_setting,
    has_stars,
    label_scale,
    numbers_of,
    numbers_with_names,
    setting_key,
)
from preprocessing.reading.partitions import refuse_partitions
from preprocessing.reading.records import EACH_TASK, STARS_TASK, ReadOptions, printable
from preprocessing.reading.shared_headers import share_headers

_FORMATS = {
    "fasttext": "fastText",
    "csv": "CSV",
    "jsonl": "JSON lines",
    "parquet": "Parquet",
}
"""Names of the formats in the line `read as`."""
_UNLABELLED = re.compile("test|unlabel|unsupervised|predict|submission", re.IGNORECASE)
"""What the name of a file or of its folder contains if its labels are missing."""
_MAX_LABELS = 5
_MAX_CHARACTERS = 30


def decide_layouts(
    files: Sequence[SourceFile], options: ReadOptions, served_scale: str = ""
) -> list[Layout]:
    """Return the layout of each file of an input.

    Args:
      files: all files of the input.
      options: the options for reading them.
      served_scale: the scale of the served model, which all labels have if they fit it; empty: the
        scale is detected from the labels alone.

    Raises:
      InputError: for the reasons in `detect.inspect`; or a file without a header fits no header
        with as many columns, or fits several. If labels are read, also: the labels fit no scale, or
        fit several scales with opposite meanings; `data.columns` has no effect; or two files of a
        group contain the same reviews.
    """
    tried = compare_files(files, inspect_files(files, options), options)
    found = [item for item in tried if isinstance(item, Inspection)]
    for item in tried:
        if isinstance(item, InputError):
            is_other_file = isinstance(item, MissingColumnsError | UnknownFormatError)
            remedy = _leave_out(found, options) if is_other_file else ""
            raise InputError(f"{item}{remedy}") from item
    return choose_layouts(files, found, options, served_scale)


def inspect_files(
    files: Sequence[SourceFile], options: ReadOptions
) -> list[Inspection | InputError]:
    """Return the result of `detect.inspect` for each file, or the error that it raised.

    Args:
      files: the files.
      options: the options for reading them.
    """

    def tried(file: SourceFile) -> Inspection | InputError:
        try:
            return inspect(file.path, options)
        except InputError as error:
            return error

    with ThreadPoolExecutor(FILES_AT_ONCE) as pool:
        return list(pool.map(tried, files))


def compare_files(
    files: Sequence[SourceFile], tried: Sequence[Inspection | InputError], options: ReadOptions
) -> list[Inspection | InputError]:
    """Return the results of inspecting files, after a comparison with the other files.

    Args:
      files: all files of an input.
      tried: the result of `inspect_files`.
      options: the options for reading them.
    """
    return refuse_partitions(files, share_headers(files, tried, options), options)


def choose_layouts(
    files: Sequence[SourceFile],
    found: Sequence[Inspection],
    options: ReadOptions,
    served_scale: str = "",
) -> list[Layout]:
    """Return the layout of each file of an input, see `decide_layouts`.

    Args:
      files: the files.
      found: the result of inspecting each of them.
      options: the options for reading them.
      served_scale: see `decide_layouts`.

    Raises:
      InputError: the labels fit no scale, or several; `data.columns` has no effect; or two files of
        a group contain the same reviews.
    """
    layouts = _with_scale(found, options, served_scale)
    if options.reads_labels:
        read = [layout for layout in layouts if layout.format != "empty"]
        if options.columns and read and all(layout.columns is None for layout in read):
            name, column = next(iter(options.columns.items()))
            raise InputError(
                f"data.columns.{name} is '{column}', but every file is fastText, which has no "
                "columns: remove the setting, or set data.format"
            )
        for copy in find_copies(files, layouts):
            raise InputError(copy.message)
    return layouts


def input_scale(layouts: Iterable[Layout]) -> str:
    """Return the scale of the labels of an input, without words, which fit every scale.

    Args:
      layouts: the layouts of all files of the input.

    Returns:
      One of `labels.SCALES`; empty if no scale was detected, or if files have different ones.
    """
    scales = {
        scale
        for layout in layouts
        if layout.format != "empty" and layout.reads_labels and not layout.label_map
        for scale in (layout.label_scale, layout.other_scale)
    } - {WORDS}
    return scales.pop() if len(scales) == 1 else ""


def input_columns(layouts: Iterable[Layout]) -> tuple[tuple[str, str], ...]:
    """Return `Labels.columns` of an input.

    Args:
      layouts: the layouts of all files of the input.
    """
    read = (layout.columns for layout in layouts)
    found = Counter(
        ((one.title or "").lower(), one.text.lower()) for one in read if one and one.by_label
    )
    return tuple(names for names, _ in found.most_common())


def _leave_out(found: Sequence[Inspection], options: ReadOptions) -> str:
    """Return a clause with the remedy for a file without reviews.

    It is empty if no file could be inspected.
    """
    if not found:
        return ""
    is_run = options.reads_labels
    remedy = "move it out of data.input_base" if is_run else "give the other files as --input"
    return f"; if it contains no texts, {remedy}"


def _with_scale(
    found: Sequence[Inspection], options: ReadOptions, served_scale: str = ""
) -> list[Layout]:
    if options.task == EACH_TASK:
        return [replace(item.layout, label_scale=WORDS, keeps_case=True) for item in found]
    if options.task == STARS_TASK:
        return [replace(item.layout, label_scale=WORDS) for item in found]
    if options.label_map:
        return [replace(item.layout, label_map=options.label_map) for item in found]
    for item in found:
        _refuse_other_labels_of_stars(item)
    # fastText has no column of labels, so its labels may have a scale of their own.
    scales = {}
    for is_fasttext in (True, False):
        group = [item for item in found if _is_fasttext(item) == is_fasttext]
        missing = NO_LABEL if _has_unlabelled_files(group) else ""
        group = [_without(item, missing) for item in group]
        scale = served_scale if _fits(group, served_scale) else _find_scale(group)
        _refuse_other_names(group, scale)
        scales[is_fasttext] = scale, missing
    layouts = []
    for item in found:
        scale, missing = scales[_is_fasttext(item)]
        # Words have the same meaning on every scale, so no number can contradict them.
        on_scale = replace(item.layout, label_scale=scale, scale_is_guessed=scale != WORDS)
        has_own_scale = item.labels is None or has_stars(
            item.layout.columns and item.layout.columns.label
        )
        layout = item.layout if has_own_scale else on_scale
        layouts.append(replace(layout, other_scale=scale, missing=missing))
    return layouts


def _has_unlabelled_files(found: Sequence[Inspection]) -> bool:
    """Return whether -1 marks a missing label, and is none on the scale from -1 to 1.

    Then it is the only label of each file that has it, another file has labels from 0, and the
    names of the files show it, unless a label above 1 does.

    Raises:
      InputError: the names of the files do not show it.
    """
    labels = [item.labels for item in found if item.labels]
    are_alone = all(among == {NO_LABEL} for among in labels if NO_LABEL in among)
    have_others = any("0" in among and len(among & set(NUMBERS)) > 1 for among in labels)
    if not are_alone or not have_others or {NO_LABEL} not in labels:
        return False
    if max(int(label) for among in labels for label in among & set(NUMBERS)) > 1:
        return True
    # The name of a folder that contains all files does not distinguish them.
    folder = os.path.commonpath([os.path.dirname(item.path) for item in found])
    for item in found:
        names = os.path.relpath(item.path, folder)
        if set(item.labels or ()) == {NO_LABEL} and not _UNLABELLED.search(names):
            raise InputError(
                f"{item.path} has the label -1 alone, which marks a missing label, or is negative "
                "on a scale from -1 to 1: set data.labels to the meaning of all labels of the "
                "input, or rename the file to unlabelled if its reviews have no label"
            )
    return True


def _without(item: Inspection, label: str) -> Inspection:
    return item._replace(labels=item.labels - {label}) if item.labels else item


def _refuse_other_labels_of_stars(item: Inspection) -> None:
    """Check that columns with the name of a rating contain stars.

    A single 0 among stars is an unknown rating, which is rejected when it is read.

    Raises:
      InputError: the labels of such a column have another scale.
    """
    for column, labels in item.stars.items():
        numbers = sorted(int(label) for label in labels if label in NUMBERS)
        if numbers and numbers[0] <= 0 and numbers[-1] < max(map(int, SCALES[STARS])):
            shown = ", ".join(map(str, numbers))
            raise InputError(
                f"{item.path}: the column `{column}` has the name of a rating of 1 to 5 stars, and "
                f"the labels {shown}: rename it to `label`, whose scale is detected, or set "
                "data.labels to the meaning of all labels of the input"
            )


def _refuse_other_names(found: Sequence[Inspection], scale: str) -> None:
    """Check that numbers have the meanings of the names that another file has for them.

    A file without the names may have the same numbers, as an export of the same dataset has.

    Args:
      found: the inspected files.
      scale: the scale of their numbers.

    Raises:
      InputError: a number would be read with another meaning than that of its name.
    """
    named = next((item for item in found if item.layout.class_names), None)
    if named is None:
        return
    names = named.layout.class_names
    meanings = numbers_with_names(names)
    for item in found:
        numbers = (item.labels or frozenset()) & set(NUMBERS)
        if item.layout.class_names or not numbers or not numbers <= meanings.keys():
            continue
        if any(SCALES[scale].get(number) != meanings[number] for number in numbers):
            shown = ", ".join(f"{number} {printable(name)}" for number, name in enumerate(names))
            raise InputError(
                f"{item.path} has numbers as labels, whose meaning is not certain beside the names "
                f"of the numbers in {named.path}: {shown}. If they are the same there, set "
                f"data.labels={as_setting(meanings)}; otherwise write words into one of the files"
            )


def _is_fasttext(item: Inspection) -> bool:
    return item.layout.format == "fasttext"


def _fits(found: Sequence[Inspection], scale: str) -> bool:
    """Return whether inspected labels are numbers on a scale, which no stars contradict."""
    seen = {label for item in found for label in item.labels or () if label in NUMBERS}
    has_stars_beside = any(item.stars for item in found)
    return bool(seen) and seen <= numbers_of(scale) and (scale == STARS or not has_stars_beside)


def _find_scale(found: Sequence[Inspection]) -> str:
    """Return the scale that fits all inspected labels, by the table in docs/reference/data.md.

    If all labels are 1, several scales with opposite meanings fit. fastText and CSV files without a
    header are an exception: they come from one family of datasets, whose labels are 1 and 2.

    Raises:
      InputError: the labels fit no scale, or several scales with opposite meanings.
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
    stars = next((item.path for item in found if item.stars), None)
    counts_from_one = most == 2 or all(_counts_from_one(item.layout) for item in with_labels)
    if least >= 1 and most <= 2 and counts_from_one and not stars:
        return "1 and 2"
    raise InputError(_unknown_labels(with_labels, stars))


def _unknown_labels(found: Sequence[Inspection], stars: str | None = None) -> str:
    """Return the message for labels without a certain meaning.

    Args:
      found: the inspected files with labels.
      stars: the path of a file with stars that contradict the labels; None if there is none.
    """
    seen = {label for item in found for label in item.labels or ()}
    labels = sorted(seen, key=lambda label: (len(label), label))
    paths = [
        next(item.path for item in found if label in (item.labels or ()))
        for label in (labels[0], labels[-1])
    ]
    shown = [printable(label)[:_MAX_CHARACTERS] for label in labels[:_MAX_LABELS]]
    keys = [setting_key(label[:_MAX_CHARACTERS]) for label in labels[:_MAX_LABELS]]
    more = f" and {len(labels) - len(shown)} more" if len(labels) > len(shown) else ""
    columns = any(item.layout.columns for item in found)
    return (
        f"{' and '.join(dict.fromkeys(paths))}: the meaning of the labels {', '.join(shown)}{more} "
        f"is not certain{f' beside the stars of {stars}' if stars else ''}: set data.labels="
        f"{{{': ?, '.join(keys)}: ?}}, where 0 is negative, 1 is positive and null is left out, "
        "or data.labels=each, with which every label is a class"
        + (", or data.columns.label to the column of the labels" if columns else "")
    )


def _counts_from_one(layout: Layout) -> bool:
    return layout.format == "fasttext" or (layout.format == "csv" and layout.header is None)


def describe(layouts: Iterable[Layout]) -> list[str]:
    """Return a line for each way in which files are read, the most frequent one first.

    Args:
      layouts: the layouts of all files of an input.
    """
    ways = Counter(map(_way, layouts)).most_common()
    if len(ways) == 1:
        return [ways[0][0]]
    return [f"{way} ({count} {'file' if count == 1 else 'files'})" for way, count in ways]


def _way(layout: Layout) -> str:
    """Return a line, such as ``JSON lines: label `stars` (1 to 5), title -, text `body` ``."""
    fields = _fields(layout)
    return f"{format_name(layout)}: {fields}" if fields else format_name(layout)


def format_name(layout: Layout) -> str:
    """Return the format of a file for a message, such as `CSV separated by tabs`.

    Args:
      layout: the layout of the file.
    """
    if layout.format == "empty":
        return "empty"
    if layout.columns is None and not layout.reads_labels:
        return "lines of text"  # without labels, fastText is plain text
    name = _FORMATS[layout.format]
    if layout.dialect.separator != COMMAS.separator:
        name += f" separated by {SEPARATORS[layout.dialect.separator]}"
    if layout.dialect.escapes:
        name += " with backslashes before special characters"
    if layout.format == "csv" and layout.header is None:
        name += " without a header"
    if layout.header_of:
        name += f" with the header of {printable(layout.header_of)}"
    return name


def _fields(layout: Layout) -> str:
    """Return the label, the title and the text of each record; empty if it has only a text."""
    scale = f"({'data.labels' if layout.label_map else layout.label_scale})"
    if layout.columns is None:
        has_label = layout.reads_labels and layout.format != "empty"
        return f"label {scale}" if has_label else ""
    if layout.format == "csv" and layout.header is None:
        title = ", title" if layout.columns.title else ""
        label = f"label {scale}" if layout.reads_labels else "label (not read)"
        return f"{label}{title}, text"
    ways = [_columns(layout, columns) for columns in (layout.columns, *layout.alternatives)]
    # Ways that differ only in the label are one if no label is read.
    return "; other records: ".join(dict.fromkeys(ways))


def _columns(layout: Layout, columns: Columns) -> str:
    """Return the columns with the scale of the label, such as ``label `stars` (1 to 5), …``."""
    label, title, text = (f"`{name}`" if name else "-" for name in columns.roles.values())
    scale = "data.labels" if layout.label_map else label_scale(layout, columns.label)[0]
    labels = f"label {label} ({scale}), " if layout.reads_labels else ""
    roles = (column.name for column in features.further_columns())
    named = [*zip(roles, columns.further, strict=False), ("id", columns.id)]
    further = "".join(f", {role} `{name}`" for role, name in named if name)
    return f"{labels}title {title}, text {text}{further}"
