"""Decide how to read all files of an input, together.

What a column is called or what a `1` means is a property of the input. Of sorted files one may have
the labels 1 and 2 alone, and only its siblings show that they are stars.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from core.errors import InputError
from preprocessing.reading.columns import Layout
from preprocessing.reading.detect import Inspection, inspect
from preprocessing.reading.find import REMEDY, SourceFile
from preprocessing.reading.labels import SCALES, WORDS
from preprocessing.reading.records import ReadOptions

_FILES_AT_ONCE = 16
"""Opening a remote file takes tens of milliseconds, nearly all of them waiting."""
_NO_COINCIDENCE = 4096
"""Bytes. Two short files may be equal because someone wrote the same short review twice."""
_SETTING = f"set data.label_scale to one of {', '.join(SCALES)}"


def decide_layouts(files: Sequence[SourceFile], options: ReadOptions) -> list[Layout]:
    """Decide how each file of an input is to be read, before any of them is.

    Raises:
        InputError: see `detection.inspect`; the labels fit no scale or fit several with opposite
            meanings; or two files of a group start with the same content.
    """
    with ThreadPoolExecutor(_FILES_AT_ONCE) as pool:
        found = list(pool.map(lambda file: inspect(file.path, options), files))
    _refuse_same_content(files, found)
    return _with_common_titles(_with_scale(found))


def detect_format(path: str, options: ReadOptions) -> Layout:
    """Decide how the only file of an input is to be read.

    Raises:
        InputError: see `decide_layouts`.
    """
    return _with_scale([inspect(path, options)])[0]


def _refuse_same_content(files: Sequence[SourceFile], found: Sequence[Inspection]) -> None:
    # Across groups such reviews are rejected one by one, as duplicates of a held-out split.
    seen: dict[tuple[str, bytes], str] = {}
    for file, item in zip(files, found, strict=True):
        if item.size < _NO_COINCIDENCE:
            continue
        other = seen.setdefault((file.group, item.digest), item.path)
        if other != item.path:
            same = "the same content" if item.is_all else f"the same first {item.size:,} bytes"
            raise InputError(f"{other} and {item.path} have {same}, unpacked: {REMEDY}")


def _with_scale(found: Iterable[Inspection]) -> list[Layout]:
    found = list(found)
    scale = _find_scale(found)
    return [
        item.layout
        if item.numbers is None
        # Words mean the same on every scale, so that no number can put them into question.
        else replace(item.layout, label_scale=scale, scale_is_guessed=scale != WORDS)
        for item in found
    ]


def _find_scale(found: Sequence[Inspection]) -> str:
    """Find the scale of all labels that were looked at.

    A 0 means zero_one. Without one, a 3, 4 or 5 means stars, and a 2 without those one_two. A 1
    alone fits all three with opposite meanings, except in CSV files without a header, which
    come from one family of datasets that counts from 1. With no number, only words are understood.
    """
    first: dict[int, Inspection] = {}  # number -> the first file that has it
    for item in found:
        for number in item.numbers or ():
            first.setdefault(number, item)
    if not first:
        return WORDS
    if 0 in first:
        if max(first) > 1:
            raise InputError(_no_scale(first, 0, max(first)))
        return "zero_one"
    if max(first) > 2:
        return "stars"
    stars = [item for item in found if item.layout.label_scale == "stars" and item.numbers is None]
    if stars:
        column = stars[0].layout.columns
        raise InputError(
            f"{first[max(first)].path} has no label above {max(first)}, and {stars[0].path} has "
            f"stars in its column {column.label if column else 'label'}: 2 is positive on the "
            f"scale one_two and negative on stars, {_SETTING}, or read the files in two runs"
        )
    if 2 in first or all(_is_headerless(item.layout) for item in found if item.numbers):
        return "one_two"
    raise InputError(
        f"{first[1].path}: every label that was looked at is 1, which is positive on the scale "
        f"zero_one and negative on one_two and stars: {_SETTING}"
    )


def _is_headerless(layout: Layout) -> bool:
    return layout.format == "csv" and layout.header is None


def _no_scale(first: dict[int, Inspection], low: int, high: int) -> str:
    one, other = first[low].path, first[high].path
    if one == other:
        return f"{one} has the labels {low} and {high}, which are on no scale together: {_SETTING}"
    return (
        f"{one} has the label {low} and {other} the label {high}, which are on no scale together: "
        f"{_SETTING}, or read the files in two runs"
    )


def _with_common_titles(layouts: list[Layout]) -> list[Layout]:
    """Give JSON lines the title that their siblings have: a head may lack an optional key."""
    titles = {
        (layout.columns.label, layout.columns.text): layout.columns.title
        for layout in layouts
        if layout.format == "jsonl" and layout.columns and layout.columns.title
    }
    return [_with_title(layout, titles) for layout in layouts]


def _with_title(layout: Layout, titles: dict[tuple[str, str], str]) -> Layout:
    columns = layout.columns
    if layout.format != "jsonl" or columns is None or columns.title is not None:
        return layout
    title = titles.get((columns.label, columns.text))
    return replace(layout, columns=columns._replace(title=title))
