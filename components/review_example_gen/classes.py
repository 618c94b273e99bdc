"""The classes of `data.labels: each`: every label of the input, found by a first pass over it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from components.review_example_gen.units import Source, Unit, read_in_turns
from core.errors import InputError
from core.machine import cores
from core.progress import Progress
from preprocessing.labels import Labels
from preprocessing.reading.labels import CollectedLabels, as_number
from preprocessing.reading.records import printable

_SHOWN = 3


def collect_labels(unit: Unit) -> Iterator[dict[str, dict[str, int]]]:
    """Read every line of a unit; yield the labels, for Beam.

    Yields:
      One element: label in the spelling of `labels.canonical` -> spelling in the files -> number of
      its lines.

    Raises:
      InputError: a file cannot be read, or there are more labels than classes are possible.
    """
    collected = CollectedLabels()
    sources = tuple(
        Source(group, piece._replace(layout=replace(piece.layout, collected=collected)))
        for group, piece in unit.sources
    )
    with (
        ThreadPoolExecutor(cores()) as pool,
        Progress("labels", str(unit.number)) as progress,
    ):
        for _, _, batch in read_in_turns(unit._replace(sources=sources), pool):
            progress.advance(batch.lines)
    yield {label: dict(spellings) for label, spellings in collected.found.items()}


def choose_classes(
    units: Iterable[Mapping[str, Mapping[str, int]]],
) -> tuple[Labels, dict[str, int | None]]:
    """Return the classes, and the class of each label.

    Labels that differ only in case, in surrounding blanks or in the form of a number are one class,
    whose name is the most frequent spelling. Classes are sorted by number if all of them are
    numbers, and otherwise by text.

    Args:
      units: the results of `collect_labels`.

    Returns:
      The classes; and label in the spelling of `labels.canonical` -> index of its class.

    Raises:
      InputError: there are fewer than two labels, or they are ids or texts.
    """
    found: dict[str, Counter[str]] = {}
    for unit in units:
        for label, spellings in unit.items():
            found.setdefault(label, Counter()).update(spellings)
    lines = sum(spellings.total() for spellings in found.values())
    if len(found) < 2:
        labels = ", ".join(map(repr, found)) or "none"
        raise InputError(
            f"data.labels: each requires two or more labels, and the files contain {labels}; set "
            "data.columns.label to the column of the labels"
        )
    if len(found) > CollectedLabels.MAX or 2 * len(found) > lines:
        examples = ", ".join(printable(label)[:40] for label in list(found)[:_SHOWN])
        raise InputError(
            f"data.labels: each found {len(found):,} labels in {lines:,} lines, such as "
            f"{examples}; these are ids or texts, set data.columns.label to another column"
        )
    numbers = {label: as_number(label) for label in found}
    if all(number is not None for number in numbers.values()):
        ordered: list[str] = sorted(found, key=lambda label: numbers[label] or 0)
    else:
        ordered = sorted(found)
    names = [_name(found[label]) for label in ordered]
    return Labels(tuple(names)), {label: index for index, label in enumerate(ordered)}


def check_classes(labels: Labels, reviews: Mapping[str, Mapping[int, int]]) -> None:
    """Check that every split contains the classes of the train split, and no other ones.

    Args:
      labels: the classes.
      reviews: split -> label -> number of its reviews.

    Raises:
      InputError: a class has no review in the train split.
    """
    train = reviews.get("train", {})
    missing = [label for label in range(labels.number) if not train.get(label)]
    if not missing:
        return
    held_out = {label: sum(found.get(label, 0) for found in reviews.values()) for label in missing}
    shown = ", ".join(
        f"{printable(labels.names[label])[:40]} ({held_out[label]:,} held-out reviews)"
        for label in missing[:_SHOWN]
    )
    more = f" and {len(missing) - _SHOWN:,} more" if len(missing) > _SHOWN else ""
    raise InputError(
        f"data.labels: the train split has no review of the class {shown}{more}; add reviews, or "
        "map the labels in data.labels to another class or to null"
    )


def _name(spellings: Counter[str]) -> str:
    """Return the most frequent spelling; of equally frequent ones, the first in text order."""
    return min(spellings, key=lambda name: (-spellings[name], name))
