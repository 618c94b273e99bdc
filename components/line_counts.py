"""The lines of an input: the counts of all, and those that are rejected. It imports no TFX."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, get_args

from preprocessing.reading.records import HARMLESS, NO_TEXT, shown_reasons

Split = Literal["train", "eval", "test"]
SPLITS: tuple[str, ...] = get_args(Split)
DUPLICATE = "duplicate_across_splits"
"""The reason for the rejection of a review whose text is also in the files of a held-out split, or
in an older span of the window."""

TWO_CLASSES_REMEDY = (
    "add lines, increase data.split_fractions of a split without files of its own, set "
    "data.columns.label to the column of the labels, or with data.window run again with the next "
    "day"
)
"""What to do about a split without Examples of two classes. Without lines of another class the
newest span of a window cannot judge a model, and the next window has it for training."""
_FEW_TEXTS = 100
"""Number of different texts with which a split of a tenth of them is hardly ever empty."""
_EXAMPLES, _REJECTED = "examples", "rejected"
_NUMBERS = ("neutral", "over_max_examples", "lost_bytes")
"""The attributes of LineCounts that are single numbers. Files and properties use the same names."""
_FILE_SEPARATOR, _PROPERTY_SEPARATOR = "/", "_"


@dataclass(frozen=True)
class LineCounts:
    """The counts of the lines of a file, of a part of a file, or of all files.

    Every line is counted once: in `examples`, `neutral`, `over_max_examples` or `rejected`.

    Attributes:
      examples: split -> number of lines that became its Examples; 0 for any other split.
      neutral: number of texts that are left out because of their label.
      over_max_examples: number of reviews beyond the limits of `data.max_examples`.
      rejected: reason -> number of lines that are rejected for this reason; 0 for any other reason.
        A reason is DUPLICATE or a constant of `preprocessing.reading.records`.
      lost_bytes: number of bytes of the files that cannot be read. `lines` does not include them.
    """

    examples: Counter[str] = field(default_factory=Counter)
    neutral: int = 0
    over_max_examples: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    lost_bytes: int = 0

    @classmethod
    def from_file(cls, counts: Mapping[str, int]) -> LineCounts:
        """Return the counts of a file.

        Args:
          counts: the result of `to_file`.

        Raises:
          ValueError: a key is not the name of a count.
        """
        for name in counts:
            if not _is_count(name, _FILE_SEPARATOR):
                raise ValueError(f"{name} is not the name of a count of lines")
        return cls._from_names(counts, _FILE_SEPARATOR)

    @classmethod
    def from_properties(cls, counts: Mapping[str, int]) -> LineCounts:
        """Return the counts of an artifact or of the outcome of a run.

        Args:
          counts: the result of `to_properties`. Other keys are ignored, because TFX adds integer
            properties of its own, such as `is_external`.
        """
        own = {name: n for name, n in counts.items() if _is_count(name, _PROPERTY_SEPARATOR)}
        return cls._from_names(own, _PROPERTY_SEPARATOR)

    @classmethod
    def _from_names(cls, counts: Mapping[str, int], separator: str) -> LineCounts:
        examples: Counter[str] = Counter()
        rejected: Counter[str] = Counter()
        numbers: dict[str, int] = {}
        for name, count in counts.items():
            group, _, member = name.partition(separator)
            if name in _NUMBERS:
                numbers[name] = count
            elif group == _EXAMPLES:
                examples[member] = count
            else:
                rejected[member] = count
        return cls(examples=examples, rejected=rejected, **numbers)

    def to_file(self) -> dict[str, int]:
        """Return the counts that are not 0, for a file: name -> number.

        The names are `neutral`, `over_max_examples`, `lost_bytes`, `examples/SPLIT` and
        `rejected/REASON`.
        """
        return dict(self._named(_FILE_SEPARATOR))

    def to_properties(self) -> dict[str, int]:
        """Return the counts that are not 0, with the names of `to_file`, but `_` instead of `/`.

        The custom properties of RejectedLines and the outcome of a run have this form.
        """
        return dict(self._named(_PROPERTY_SEPARATOR))

    def _named(self, separator: str) -> Iterator[tuple[str, int]]:
        for group, members in ((_EXAMPLES, self.examples), (_REJECTED, self.rejected)):
            for member, count in members.items():
                if count:
                    yield f"{group}{separator}{member}", count
        for name in _NUMBERS:
            count = getattr(self, name)
            if count:
                yield name, count

    def __add__(self, other: LineCounts) -> LineCounts:
        return LineCounts(
            examples=self.examples + other.examples,
            neutral=self.neutral + other.neutral,
            over_max_examples=self.over_max_examples + other.over_max_examples,
            rejected=self.rejected + other.rejected,
            lost_bytes=self.lost_bytes + other.lost_bytes,
        )

    @property
    def lines(self) -> int:
        """The number of all lines that were read."""
        used = self.examples.total() + self.neutral + self.over_max_examples
        return used + self.rejected.total()

    @property
    def lines_with_review(self) -> int:
        """The number of lines without those that contain no review, such as repeated headers."""
        return self.lines - sum(self.rejected[reason] for reason in HARMLESS)

    @property
    def unusable(self) -> Counter[str]:
        """Reason -> number of rejected lines with a review that cannot be read.

        Lines without a review are left out, and so are duplicates, because another split contains
        their review.
        """
        left_out = {DUPLICATE, *HARMLESS}
        return Counter({name: n for name, n in self.rejected.items() if n and name not in left_out})

    @property
    def no_line_usable(self) -> bool:
        """Whether all lines are rejected, at least one as unusable and none as a duplicate."""
        only_rejected = self.lines == self.rejected.total()
        return only_rejected and not self.rejected[DUPLICATE] and bool(self.unusable)

    def sentence(self) -> str:
        """Return the counts as text, such as `3,000 read: 2,700 train, …, 12 rejected (…)`."""
        parts = [f"{self.examples[split]:,} {split}" for split in SPLITS]
        if self.neutral:
            parts.append(f"{self.neutral:,} left out by label")
        if self.over_max_examples:
            parts.append(f"{self.over_max_examples:,} over data.max_examples")
        if self.rejected[NO_TEXT]:
            parts.append(f"{self.rejected[NO_TEXT]:,} without text left out")
        rejected = {name: n for name, n in self.rejected.items() if n and name != NO_TEXT}
        in_brackets = f" ({shown_reasons(rejected)})" if rejected else ""
        parts.append(f"{sum(rejected.values()):,} rejected{in_brackets}")
        if self.lost_bytes:
            parts.append(f"{self.lost_bytes:,} bytes of the files cannot be read")
        return f"{self.lines:,} read: {', '.join(parts)}"


class RejectedLine(NamedTuple):
    """A line that did not become an Example.

    Attributes:
      file: path of its file.
      position: number of the line in the file, from 1; in CSV, of the first line of the record; in
        Parquet, of the row. 0 if the file was not read from its start.
      reason: the reason of the rejection, see `LineCounts.rejected`.
      detail: the content that caused the rejection, at most 200 printable characters.
    """

    file: str
    position: int
    reason: str
    detail: str

    def file_position(self) -> str:
        """Return `NAME:POSITION`, with the name of the file without its folder."""
        name = os.path.basename(self.file)
        return f"{name}:{self.position}" if self.position else name


def joined_lines(lines: Iterable[RejectedLine]) -> str:
    """Return rejected lines with their places and reasons, as a clause of a message."""
    return "; ".join(f"{line.file_position()} {line.reason} ({line.detail})" for line in lines)


def present_classes(counts: Mapping[str, float]) -> list[str]:
    """Return the classes that have an Example. Each split requires two or more.

    Args:
      counts: name of a class -> number of its Examples.
    """
    return [name for name, count in counts.items() if count]


def class_problem(split: str, counts: Mapping[str, float], noun: str) -> str | None:
    """Return the problem of a split in which all Examples have one class, or None.

    Args:
      split: the name of the split.
      counts: name of a class -> number of its Examples.
      noun: the word for a text, see `Labels.noun`.
    """
    classes = present_classes(counts)
    return f"{split}: every {noun} is {classes[0]}" if len(classes) == 1 else None


def repetition_problem(examples: int, texts: int) -> str | None:
    """Return why splits may lack Examples or classes, if an input repeats a few texts; else None.

    Args:
      examples: number of Examples of all splits.
      texts: number of their different texts.
    """
    if not 0 < texts < _FEW_TEXTS or 2 * texts > examples:
        return None
    differ = "1 is different" if texts == 1 else f"{texts:,} are different"
    return (
        f"of {examples:,} texts only {differ}, and equal texts belong to one split; add other "
        "texts, or set data.columns.text to the column of the texts"
    )


def _is_count(name: str, separator: str) -> bool:
    """Return whether a name is the name of a count, with this separator of group and member."""
    groups = (f"{_EXAMPLES}{separator}", f"{_REJECTED}{separator}")
    return name in _NUMBERS or name.startswith(groups)
