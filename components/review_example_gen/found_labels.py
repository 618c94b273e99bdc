"""The labels of an input, which a first pass over the files finds if the task is not sentiment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, NamedTuple

from components.review_example_gen.units import (
    BYTES_OF_LABELS,
    Source,
    Unit,
    count_bytes,
    read_in_turns,
)
from core.machine import cores
from core.progress import Progress
from preprocessing.reading.labels import CollectedLabels
from preprocessing.reading.records import Batch


class FoundLabels(NamedTuple):
    """The labels of an input: label -> group of files -> number of its lines with a text."""

    lines: Mapping[str, Counter[str]]

    @property
    def totals(self) -> dict[str, int]:
        """Label -> number of its lines in all files."""
        return {label: groups.total() for label, groups in self.lines.items()}


def collect_labels(unit: Unit) -> Iterator[list[Any]]:
    """Read every line of a unit; yield its labels, for Beam.

    Texts are neither hashed nor encoded nor written. The reading ends if there are too many labels.

    Yields:
      One element: (label, group of files, number of its lines with a text) of all labels.

    Raises:
      InputError: a file cannot be read.
    """
    collected = CollectedLabels()
    sources = tuple(with_collected(unit.sources, collected))
    with (
        ThreadPoolExecutor(cores()) as pool,
        Progress(BYTES_OF_LABELS, str(unit.number)) as size,
        Progress("labels read", str(unit.number)) as progress,
    ):

        def batches() -> Iterator[tuple[str, Batch]]:
            found = read_in_turns(unit._replace(sources=sources), pool)
            for group, _, batch in count_bytes(unit, found, size):
                progress.advance(batch.lines)
                yield group, batch

        yield count_labels(batches(), collected)


def with_collected(sources: Iterable[Source], collected: CollectedLabels) -> list[Source]:
    """Return pieces of files with layouts by which `collected` gets their labels.

    Args:
      sources: the pieces.
      collected: the labels.
    """
    return [
        Source(group, piece._replace(layout=replace(piece.layout, collected=collected)))
        for group, piece in sources
    ]


def count_labels(
    batches: Iterable[tuple[str, Batch]], collected: CollectedLabels
) -> list[tuple[str, str, int]]:
    """Return (label, group of files, number of its lines with a text) of all labels, sorted.

    The reading ends if there are too many labels.

    Args:
      batches: (group of a file, batch), read by layouts with `collected`.
      collected: the labels of the batches.
    """
    lines: dict[str, Counter[int]] = {}
    for group, batch in batches:
        lines.setdefault(group, Counter()).update(batch.labels)
        if collected.are_too_many:
            break
    names = list(collected.names)
    return sorted(
        (names[number], group, count)
        for group, numbers in lines.items()
        for number, count in numbers.items()
    )


def join_labels(units: Iterable[Iterable[tuple[str, str, int]]]) -> FoundLabels:
    """Return the labels of all units, sorted by text.

    Args:
      units: the results of `collect_labels`.
    """
    found: dict[str, Counter[str]] = {}
    for unit in units:
        for label, group, count in unit:
            found.setdefault(label, Counter())[group] += count
    return FoundLabels(dict(sorted(found.items())))
