"""Read the sample as a run reads its files: splits, counts, texts, and the error of a run."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from components.line_counts import (
    SPLITS,
    TWO_CLASSES_REMEDY,
    LineCounts,
    RejectedLine,
    class_problem,
    joined_lines,
    present_classes,
    repetition_problem,
)
from components.review_example_gen.acceptance import check_counts
from components.review_example_gen.classes import check_classes
from components.review_example_gen.spans import PRIORITIES, Input, check_spans
from components.review_example_gen.splits import (
    Splitting,
    are_over,
    assign_batch,
    count_batch,
    count_ranges,
    find_limit,
    join_keys,
    named_splits,
    text_keys,
)
from core.errors import InputError
from pipeline.config import PipelineConfig
from pipeline.data_check.attempts import Attempt
from pipeline.data_check.found import Example, Texts
from pipeline.data_check.sample import sample_of
from pipeline.data_check.texts import describe_texts
from preprocessing.labels import SENTIMENT
from preprocessing.reading.files import HELD_OUT, SourceFile
from preprocessing.reading.records import HARMLESS, SENTIMENT_TASK, unused_file

_EXAMPLES, _CHARACTERS = 5, 300
_SHOWN = 5
"""Number of rejected lines in a message."""


@dataclass(frozen=True)
class RunInput:
    """What a run with some settings would read.

    Attributes:
      config: the settings.
      files: the files.
      spans: the input with its spans, if `files` are its files; else None.
    """

    config: PipelineConfig
    files: Sequence[SourceFile]
    spans: Input | None = None

    @property
    def size(self) -> int:
        """The bytes of all files, as they are stored."""
        return sum(file.size for file in self.files)


@dataclass
class Reading:
    """The lines of a sample, read as in a run.

    Attributes:
      counts: the counts of all lines.
      by_file: path -> the counts of its lines.
      lines: path -> number of its lines that were read.
      incomplete: the paths of files of which not all lines were read.
      examples_of: split -> label -> number of its Examples.
      first_texts: some texts with the names of their classes.
      texts: the properties of all texts.
      notes: what a run would print about the classes.
      unused: what a run would print about files without a usable line.
      error: the error with which a run would end; None if it would read the lines.
    """

    counts: LineCounts = field(default_factory=LineCounts)
    by_file: dict[str, LineCounts] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    incomplete: set[str] = field(default_factory=set)
    examples_of: dict[str, Counter[int]] = field(default_factory=dict)
    first_texts: tuple[Example, ...] = ()
    texts: Texts = field(default_factory=Texts)
    notes: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    error: InputError | None = None


def read_sample(given: RunInput, attempt: Attempt) -> Reading:
    """Return the lines of a sample, read as in a run.

    The limits of `data.max_examples` are applied if the sample is the whole input.

    Args:
      given: the files and the settings of the run.
      attempt: an attempt with these files, without an error.

    Raises:
      OSError: a file cannot be read.
    """
    config = given.config
    sample = sample_of(given.files, attempt.mapped_layouts())
    splitting = Splitting(named_splits(sample.sources), config.data.split_fractions)
    priorities = PRIORITIES if config.data.window > 1 else HELD_OUT
    held_out = join_keys(
        (group, text_keys(batch.texts)) for group, _, batch in sample.only(priorities).batches()
    )
    assigned = []
    rejected: dict[tuple[str, str], list[RejectedLine]] = defaultdict(list)
    for group, piece, batch in sample.batches():
        assigned.append((piece.path, assign_batch(batch, group, splitting, held_out, priorities)))
        for item in batch.rejected:
            of_file = rejected[piece.path, item.reason]
            if len(of_file) < _SHOWN:
                position = item.position if not piece.start else 0
                of_file.append(RejectedLine(piece.path, position, item.reason, item.detail))
    reading = Reading(lines=sample.lines, incomplete=sample.incomplete)
    limits: dict[str, int] = {}
    if not reading.incomplete:
        for split, most in config.data.max_examples.items():
            keys = [
                one.keys[(one.split == split) & (one.duplicate_in == "")] for _, one in assigned
            ]
            limits[str(split)] = find_limit(count_ranges(_joined(keys)), most)
    texts: list[bytes] = []
    labels: list[int] = []
    first: dict[int, list[bytes]] = {}
    reading.examples_of = {split: Counter() for split in SPLITS}
    for path, one in assigned:
        over = are_over(one.keys, one.split, limits)
        counts = count_batch(one, over)
        reading.counts += counts
        reading.by_file[path] = reading.by_file.get(path, LineCounts()) + counts
        used = np.flatnonzero(~over & (one.duplicate_in == ""))
        for index in used.tolist():
            label = one.batch.labels[index]
            reading.examples_of[str(one.split[index])][label] += 1
            of_label = first.setdefault(label, [])
            if len(of_label) < _EXAMPLES:
                of_label.append(one.batch.texts[index])
        texts += one.batch.texts
        labels += one.batch.labels
    reading.texts = describe_texts(texts, _joined(one.keys for _, one in assigned), labels)
    reading.first_texts = _in_turns(first, attempt.names)
    lines = sorted(line for of_file in rejected.values() for line in of_file)
    _check(reading, given, attempt, splitting.named, lines)
    return reading


def _joined(keys: Iterable[np.ndarray]) -> np.ndarray:
    """Return the text keys of all batches, of which there may be none."""
    return np.concatenate([np.zeros(0, np.uint64), *keys])


def _in_turns(texts: Mapping[int, Sequence[bytes]], names: Sequence[str]) -> tuple[Example, ...]:
    """Return some texts, one of each class in turn."""
    turns = [
        (number, label, text) for label, found in texts.items() for number, text in enumerate(found)
    ]
    turns.sort(key=lambda one: one[:2])
    return tuple(
        Example(names[label], text.decode()[:_CHARACTERS]) for _, label, text in turns[:_EXAMPLES]
    )


def _check(
    reading: Reading,
    given: RunInput,
    attempt: Attempt,
    named: frozenset[str],
    rejected: Sequence[RejectedLine],
) -> None:
    """Add the notes and the error of a run to a reading.

    Args:
      reading: the reading.
      given: the files and the settings of the run.
      attempt: how the files were read.
      named: the splits with files of their own.
      rejected: the first rejected lines of each file and reason, sorted.
    """

    def first(reasons: Collection[str]) -> str:
        return joined_lines([line for line in rejected if line.reason in reasons][:_SHOWN])

    notes = attempt.classes.notes if attempt.classes else ()
    for path, counts in sorted(reading.by_file.items()):
        if counts.no_line_usable:
            line = next(
                line for line in rejected if line.file == path and line.reason not in HARMLESS
            )
            reading.unused += (unused_file(path, counts.rejected, line.detail),)
    try:
        if given.spans:
            check_spans(given.spans, reading.by_file)
        most = given.config.data.max_rejected_fraction
        check_counts(reading.counts, reading.by_file, given.size, most, first)
        if attempt.classes and attempt.options.task != SENTIMENT_TASK:
            over = reading.counts.over_max_examples
            notes += check_classes(
                attempt.classes.labels,
                reading.examples_of,
                named,
                over,
                spans=len(given.spans.spans) if given.spans else 0,
            )
        _check_splits(reading, attempt)
    except InputError as error:
        reading.error = error
    reading.notes = notes


def _check_splits(reading: Reading, attempt: Attempt) -> None:
    """Check what DataGate requires of each split.

    Raises:
      InputError: a split has no Example, or all its Examples have one class.
    """
    noun = attempt.classes.labels.noun if attempt.classes else SENTIMENT.noun
    found = []
    for split, numbers in reading.examples_of.items():
        counts = {name: numbers[label] for label, name in enumerate(attempt.names)}
        if not present_classes(counts):
            found.append(f"{split} has no line")
        found += filter(None, [class_problem(split, counts, noun)])
    if found:
        texts = reading.texts
        repetition = repetition_problem(texts.number, texts.number - texts.duplicates)
        raise InputError(
            f"each split requires lines of two classes: {'; '.join(found)}; "
            f"{repetition or TWO_CLASSES_REMEDY}"
        )
