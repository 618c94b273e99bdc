"""The spans of an input: those that are there, and the files of the window of a run.

With a window of two or more spans, the newest span is the test split, and the older ones are the
files of train and eval. A span is never replaced by another one: if one is late, missing, empty or
there twice, the run ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, islice
from typing import NamedTuple

from components.line_counts import DUPLICATE, LineCounts
from core.errors import InputError
from preprocessing.reading.files import (
    ALL,
    NoFilesError,
    SourceFile,
    find_file,
    find_left_out,
    find_sources,
    relative_path,
)
from preprocessing.reading.folders import list_below
from preprocessing.reading.listing import joined, short
from preprocessing.reading.span_pattern import NEWEST, SpanPattern, spans_of

_SHOWN = 5
_GREATEST = 2**63 - 2
"""The greatest number of a span and of a version. ML Metadata stores them, and the number after
that of the newest span, in 64 bits."""
OLDER, NEWER = "train", "test"
"""The groups of the files in a window of two or more spans. Both are split by the hash of the text
if they are train, see `splits.assign_splits`."""

PRIORITIES = {OLDER: 1}
"""The group whose texts are removed from the other one, for `splits.assign_batch`: an older span is
the same in every window."""


class Span(NamedTuple):
    """A span that is there, in one version."""

    number: int
    """TFX's span: the number in the path, or the days of its date since 1970-01-01."""
    version: int | None
    """The number of the version; None if the path has no placeholder for it."""
    name: str
    """The number, or the date."""
    path: str
    """The path of its folder or its file."""


class Input(NamedTuple):
    """The files that a run reads."""

    base: str
    """The folder to which the paths of the files are relative in a fingerprint."""
    files: list[SourceFile]
    spans: tuple[Span, ...]
    """The spans of the window in ascending order; empty if the input has no spans."""

    @property
    def size(self) -> int:
        """The bytes of all files, as they are stored."""
        return sum(file.size for file in self.files)

    def of_span(self, span: Span) -> list[SourceFile]:
        """Return the files of a span."""
        return [file for file in self.files if f"{file.path}/".startswith(f"{span.path}/")]

    def describe(self) -> list[str]:
        """Return a line about the spans; none if the input has no spans."""
        if not self.spans:
            return []
        names = [
            span.name + (f" version {span.version}" if span.version is not None else "")
            for span in self.spans
        ]
        if len(names) == 1:
            return [f"span {names[0]}"]
        return [f"spans {names[0]} to {names[-1]}, of which {names[-1]} is the test split"]


def find_input(
    input_base: str, patterns: Mapping[str, str], window: int = 1, span: str = NEWEST
) -> Input:
    """Find the files that a run reads.

    Args:
      input_base: folder or gs:// prefix, perhaps with placeholders for spans.
      patterns: group -> glob below the folder, or below the folder of each span.
      window: the number of spans.
      span: the newest one of them, see `SpanPattern.number`.

    Raises:
      InputError: for the reasons in `find_sources`; or a span is late, missing, empty or there
        twice; or the placeholders, the window or the span are wrong.
    """
    try:
        pattern = spans_of(input_base, window, span)
    except ValueError as error:
        raise InputError(f"data.{error}") from None
    if pattern is None:
        return Input(input_base, find_sources(input_base, patterns), ())
    spans = _window(pattern, window, pattern.number(span))
    return Input(pattern.base, _files(spans, patterns), spans)


def left_out(found: Input, patterns: Mapping[str, str]) -> str:
    """Return a line with the files in the folders of an input that are not read for their names.

    It is empty if there are none.

    Args:
      found: the input.
      patterns: see `find_input`.

    Raises:
      InputError: a folder cannot be listed.
    """
    folders = [span.path for span in found.spans] or [found.base]
    paths = [path for folder in folders for path in find_left_out(folder, patterns.values())]
    if not paths:
        return ""
    names = [relative_path(found.base, path) for path in paths]
    return (
        f"{joined(list(map(short, names)), _SHOWN)}, "
        f"{'whose name is that' if len(names) == 1 else 'whose names are those'} "
        "of documents, hidden files or backups; to read one, rename it, or name it in data.splits"
    )


def find_again(found: Input, patterns: Mapping[str, str]) -> list[SourceFile]:
    """Return the files that the same folders contain now.

    Args:
      found: the input. A span that has arrived since then is left out.
      patterns: see `find_input`.

    Raises:
      InputError: for the reasons in `find_input`.
    """
    return _files(found.spans, patterns) if found.spans else find_sources(found.base, patterns)


def _window(pattern: SpanPattern, window: int, newest: int | None) -> tuple[Span, ...]:
    """Return the spans of a window in ascending order.

    Raises:
      InputError: one of them is not there, or is there twice.
    """
    found = sorted(_find_spans(pattern))
    if not found:
        raise InputError(
            f"data.input_base: {pattern.base} contains no span, that is no folder or file whose "
            f"path matches {pattern}"
        )
    numbers = sorted({span.number for span in found})
    last = numbers[-1] if newest is None else newest
    if last not in numbers:
        raise InputError(
            f"data.span: span {pattern.name(last)} of {pattern} is not there"
            f"{' yet' if last > numbers[-1] else ''}; there {_there(pattern, numbers)}"
        )
    wanted = range(last - window + 1, last + 1)
    lacking = window - sum(number in wanted for number in numbers)
    if lacking:
        raise InputError(
            f"data.window: {window} spans up to {pattern.name(last)} of {pattern} lack "
            f"{_missing(pattern, numbers, wanted, lacking)}; there {_there(pattern, numbers)}. Add "
            "what is missing, or set data.window to a smaller number"
        )
    chosen: list[Span] = []
    for number, group in groupby(found, key=lambda span: span.number):
        if number not in wanted:
            continue
        versions = list(group)
        span = versions[-1]
        same = [each.path for each in versions if each.version == span.version]
        if len(same) > 1:
            at = "" if span.version is None else f", version {span.version},"
            raise InputError(
                f"data.input_base: span {span.name}{at} is there {len(same)} times: "
                f"{', '.join(same)}; keep one of them"
            )
        chosen.append(span)
    return tuple(chosen)


def _missing(pattern: SpanPattern, numbers: Sequence[int], wanted: range, lacking: int) -> str:
    """Return `the spans 2026-11-01, 2026-11-02 and 7 more` for the spans that are not there.

    Args:
      pattern: the path with placeholders.
      numbers: the spans that are there.
      wanted: the spans of the window, which may begin before the first possible one.
      lacking: the number of those that are not there.
    """
    possible = range(max(wanted.start, pattern.least), wanted.stop)
    missing = islice((number for number in possible if number not in numbers), _SHOWN)
    shown = list(map(pattern.name, missing))
    spans = "span" if lacking == 1 else "spans"
    if not shown:
        return f"{lacking:,} {spans}"
    more = f" and {lacking - len(shown):,} more" if lacking > len(shown) else ""
    return f"the {spans} {', '.join(shown)}{more}"


def _there(pattern: SpanPattern, numbers: Sequence[int]) -> str:
    """Return `are 2026-11-01 to 2026-11-04 and 2026-11-06` for the spans that are there."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    shown = [
        pattern.name(first) + (f" to {pattern.name(last)}" if last > first else "")
        for first, last in runs[-_SHOWN:]
    ]
    listed = " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))
    return f"{'is' if len(numbers) == 1 else 'are'} {listed}"


def _files(spans: Sequence[Span], patterns: Mapping[str, str]) -> list[SourceFile]:
    """Return the files of spans, span by span.

    Raises:
      InputError: a span has no file, or cannot be listed.
    """
    files: list[SourceFile] = []
    for span in spans:
        try:
            file = find_file(span.path) if list(patterns) == [ALL] else None
            found = [file] if file else find_sources(span.path, patterns)
        except NoFilesError as error:
            raise InputError(
                f"data.input_base: span {span.name} has no files, because {error.problem}; export "
                f"it again, or set data.span to an earlier one{error.hints}"
            ) from error
        except InputError as error:
            raise InputError(f"data.input_base: span {span.name}: {error}") from error
        if len(spans) > 1:
            group = NEWER if span is spans[-1] else OLDER
            found = [file._replace(group=group, span=span.name) for file in found]
        files += found
    return files


def _find_spans(pattern: SpanPattern) -> Iterator[Span]:
    """Yield a span for each folder or file that matches, in any version and any order.

    Raises:
      InputError: a folder cannot be listed, a date does not exist, or a number is too great.
    """
    for parts in list_below(pattern.base, len(pattern.names), pattern.may_contain):
        path = "/".join([pattern.base.rstrip("/"), *parts])
        try:
            match = pattern.match(parts)
        except ValueError:
            raise InputError(
                f"data.input_base: {path} is no date that exists; rename or remove it"
            ) from None
        if match:
            number, version = match
            if max(number, version or 0) > _GREATEST:
                raise InputError(
                    f"data.input_base: {path} has a number above {_GREATEST:,}, the greatest one "
                    "of a span or a version; rename or remove it"
                )
            yield Span(number, version, pattern.name(number), path)


def check_spans(found: Input, by_file: Mapping[str, LineCounts]) -> None:
    """Check that each span has a review, and that the newest one is not a copy of older ones.

    Args:
      found: the input.
      by_file: path of a file -> the counts of its lines.

    Raises:
      InputError: a span has none, or the newest one is a copy.
    """
    for span in found.spans:
        paths = [file.path for file in found.of_span(span)]
        counts = sum((by_file.get(path, LineCounts()) for path in paths), LineCounts())
        used = counts.examples.total() + counts.over_max_examples
        repeated = counts.rejected[DUPLICATE]
        if used:
            continue
        if repeated and len(found.spans) > 1:
            raise InputError(
                f"data.input_base: all {repeated:,} reviews of span {span.name} ({span.path}) are "
                "in older spans too; export it again"
            )
        if not repeated:
            raise InputError(
                f"data.input_base: span {span.name} ({span.path}) has no usable review: "
                f"{counts.sentence()}; export it again"
            )
