"""Describe in a few lines how the files of an input are read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from preprocessing.reading.columns import Layout
from preprocessing.reading.labels import WORDS

_MOST_LINES = 4
_FORMATS = {"fasttext": "fastText", "csv": "CSV", "jsonl": "JSON lines", "parquet": "Parquet"}
_SCALES = {"stars": "1 to 5", "zero_one": "0 and 1", "one_two": "1 and 2", WORDS: "words"}


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
    if layout.format == "csv" and layout.header is None:
        title = ", title" if layout.columns.title else ""
        return f"CSV without a header: label {scale}{title}, text"
    label, title, text = (f"`{name}`" if name else "-" for name in layout.columns)
    labels = f"label {label} {scale}, " if layout.labels == "required" else ""
    return f"{format}: {labels}title {title}, text {text}"
