"""The results of reading, batches of reviews and rejected lines, and its options."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

from preprocessing import features
from preprocessing.labels import SENTIMENT
from preprocessing.reading import values

TaskName = Literal["sentiment", "stars", "each", "map"]
SENTIMENT_TASK: Final = "sentiment"
STARS_TASK: Final = "stars"
EACH_TASK: Final = "each"
MAP_TASK: Final = "map"
"""The values of `ReadOptions.task`. The classes of all but the first follow from a first pass over
the files."""
BAD_LABEL = "bad_label"
OTHER_SCALE = "label_of_another_scale"
NO_TEXT = "no_text"
UNKNOWN_COLUMNS = "unknown_columns"
INVALID_UTF8 = "invalid_utf8"
BROKEN_JSON = "broken_json"
WRONG_TYPE = "wrong_type"
BROKEN_CSV = "broken_csv"
CORRUPT_ARCHIVE = "corrupt_archive"
LINE_TOO_LONG = "line_too_long"
REPEATED_HEADER = "repeated_header"
HARMLESS = frozenset({NO_TEXT, REPEATED_HEADER})
"""The reasons of rejected lines that contain no review. No review is lost with these lines."""

_DETAIL_CHARACTERS = 200
_NAMES, _MOST_NAMES, _NAME_CHARACTERS = 20, 60, 60
"""The number of column names in a message, the maximum number if more names are likely, and the
maximum number of characters of a name."""
_LIKELY = re.compile(
    "label|rating|score|star|sentiment|polarity|class|target|text|review|comment|body|content"
    "|title|summary|headline|bewertung|note|avis|puntu|rese",
    re.IGNORECASE,
)
"""Parts of the names of columns that may contain the labels or the texts of reviews."""
_WRITTEN = {"nan", "null", "(null)", "[null]", "<null>", "#n/a", "#null!", "<na>", "nat", r"\n"}
MISSING = frozenset({*_WRITTEN, "none", "nil", "na", "n/a"})
"""The words that pandas, R, databases and spreadsheets write for a missing value, in lower case. As
a text, those outside of _WRITTEN may be what a person wrote."""
MISSING_STARTS = "nN#<([\\ \t\xa0"
"""The first characters of these words, also with a blank before them."""
LONGEST_MISSING = 10
"""The maximum number of characters of such a word, with blanks around it."""
_BOOLEANS = {"false": "0", "true": "1"}


class Rejected(NamedTuple):
    """A line that cannot be used."""

    position: int  # in the piece, from 1
    reason: str  # one of the constants above
    detail: str  # at most 200 characters, all printable


@dataclass(slots=True)
class Batch:
    """Consecutive lines of a piece: its reviews, column by column, and the other lines.

    Attributes:
      positions: the line number of each review in the piece, from 1. For CSV it is the first line
        of the record, for Parquet the number of the row.
      labels: the index of the class of each review; always 0 if labels are not read.
      texts: the text of each review, which includes the title, in UTF-8.
      further: for each review, the values of `features.further_columns`; empty if there are none,
        or the file has no columns.
      ids: the id of each review in UTF-8; empty if `ReadOptions.id` is not set, or if the file has
        no columns.
      rejected: the lines that cannot be used.
      neutrals: the line numbers of reviews whose label is left out.
      lost: number of bytes of the (compressed) file that cannot be read, because they are damaged,
        or belong to lines that are too long or contain several records, or to long runs of NUL or
        0xFF.
      read: number of (compressed) bytes of the piece that were read before the end of the batch.
    """

    positions: list[int] = field(default_factory=list)
    labels: list[int] = field(default_factory=list)
    texts: list[bytes] = field(default_factory=list)
    further: list[tuple[bytes | int, ...]] = field(default_factory=list)
    ids: list[bytes] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    neutrals: list[int] = field(default_factory=list)
    lost: int = 0
    read: int = 0

    @property
    def lines(self) -> int:
        """The number of lines (CSV: records, Parquet: rows), with rejected and neutral ones."""
        return len(self.texts) + len(self.rejected) + len(self.neutrals)

    @property
    def columns(self) -> dict[str, Sequence[Any]]:
        """The name of each of `features.COLUMNS` -> its values, one for each review."""
        found: dict[str, Sequence[Any]] = {features.TEXT: self.texts, features.LABEL: self.labels}
        for index, (name, missing, _) in enumerate(features.further_columns()):
            found[name] = [row[index] for row in self.further] or [missing] * len(self.texts)
        return found

    def add(
        self,
        position: int,
        label: int,
        title: str,
        body: str,
        further: Sequence[Any] = (),
        id: bytes | None = None,
    ) -> None:
        """Add a review, whose text is `title: body`, or the body if the title is blank.

        The review is rejected if its text cannot be encoded as UTF-8, or if both the title and the
        body are blank. It is left out if its label is `labels.NEUTRAL`.

        Args:
          position: its position in the piece, from 1.
          label: the index of its class, or `labels.NEUTRAL`.
          title: the title; empty if there is none.
          body: the text below the title.
          further: the values in the columns of `Batch.further`; None for a missing value.
          id: the id, see `id_text`; None if ids are not read.
        """
        # Most texts begin with a letter, which saves calls.
        has_title = title and (title[0].isalnum() or not values.is_blank(title))
        text = f"{title}: {body}" if has_title else body
        try:
            data = text.encode()
        except UnicodeEncodeError as error:
            self.reject(position, INVALID_UTF8, text[error.start :])
            return
        if b"\0" in data:
            self.reject(position, INVALID_UTF8, text[text.index("\0") :])
        elif not has_title and not text[:1].isalnum() and values.is_blank(text):
            self.reject(position, NO_TEXT, "the title and the body are blank")
        elif label < 0:
            self.neutrals.append(position)
        else:
            self.positions.append(position)
            self.labels.append(label)
            self.texts.append(data)
            if further:
                pairs = zip(further, features.further_columns(), strict=True)
                self.further.append(tuple(_converted(value, of.missing) for value, of in pairs))
            if id is not None:
                self.ids.append(id)

    def reject(self, position: int, reason: str, value: object) -> None:
        """Reject a line with the detail `printable(value)`.

        Args:
          position: its position in the piece, from 1.
          reason: one of the constants of this module.
          value: the content of the line, or its problem.
        """
        self.rejected.append(rejected(position, reason, value))


@dataclass(frozen=True)
class ReadOptions:
    """The options for reading files; the format `auto` is detected from each file.

    Attributes:
      format: `auto` or one of `file_format.FORMATS`.
      columns: `label`, `title`, `text` or the name of one of `features.further_columns` -> name of
        the column in the files. Columns without an entry are detected. If the value of `title` is
        None, no title is read.
      task: see `data.labels`.
      classes: the names of the classes; empty if they are found in the files.
      label_map: label in the spelling of `labels.canonical` -> index of its class, or None: the
        review is left out. If the map is empty, the meaning of labels is detected.
      reads_labels: whether a line without a label is rejected. Otherwise labels are not read, and
        every line with a text is a review.
      id: a column whose values are kept beside the reviews; None if there is none.
      trained: see `Labels.columns`. It has an effect on files whose labels are not read.
    """

    format: str = "auto"
    columns: Mapping[str, str | None] = field(default_factory=dict)
    task: TaskName = SENTIMENT_TASK
    classes: tuple[str, ...] = SENTIMENT.names
    label_map: Mapping[str, int | None] = field(default_factory=dict)
    reads_labels: bool = True
    id: str | None = None
    trained: tuple[tuple[str, str], ...] = ()


def printable(value: object) -> str:
    """Return a value as printable text of at most 200 characters, for `Rejected.detail`."""
    if isinstance(value, bytes):
        value = value[:_DETAIL_CHARACTERS].decode("utf-8", "backslashreplace")
    text = value if isinstance(value, str) else values.shown(value)
    shown = (char if char.isprintable() else _escaped(char) for char in text[:_DETAIL_CHARACTERS])
    return "".join(shown)[:_DETAIL_CHARACTERS]


def shown_reasons(rejected: Mapping[str, int]) -> str:
    """Return the reasons for which lines were rejected, such as `bad_label 2, no_text 1,000`.

    Args:
      rejected: reason -> number of lines.
    """
    return ", ".join(f"{reason} {count:,}" for reason, count in sorted(rejected.items()))


def _escaped(char: str) -> str:
    # The error handler "surrogateescape" decodes the byte 0xE4 as U+DCE4.
    if "\udc80" <= char <= "\udcff":
        return f"\\x{ord(char) - 0xDC00:02x}"
    return char.encode("unicode_escape").decode("ascii")


def shown_names(names: Sequence[str]) -> str:
    """Return the names of columns as a list for a message.

    Args:
      names: the names. If there are many, the list contains those that may be the names of labels
        and texts, and ends with the number of the others.
    """
    likely = [index for index, name in enumerate(names) if _LIKELY.search(name)]
    others = [index for index in range(len(names)) if index not in likely]
    shown = sorted([*likely, *others][: max(_NAMES, len(likely))][:_MOST_NAMES])
    listed = ", ".join(_short(names[index]) for index in shown)
    left = len(names) - len(shown)
    return f"{listed} ... and {left} more" if left else listed or "none"


def _short(name: str) -> str:
    return printable(name if len(name) <= _NAME_CHARACTERS else f"{name[:_NAME_CHARACTERS]}...")


def rejected(position: int, reason: str, value: object) -> Rejected:
    """Return a `Rejected` whose detail is `printable(value)`."""
    return Rejected(position, reason, printable(value))


def unused_file(path: str, rejected_lines: Mapping[str, int], first: str) -> str:
    """Return the message about a file in which no line can be used.

    Args:
      path: the file.
      rejected_lines: reason -> its number of lines.
      first: the detail of the first of these lines.
    """
    reasons = shown_reasons(rejected_lines)
    return f"no line of {path} can be used: {reasons}; the first: {first}"


def is_missing(value: Any, label_map: Mapping[str, int | None]) -> bool:
    """Return whether a label is a word that programs write for a missing value, such as `NaN`.

    A text may consist of such a word, see `has_text` and `choice.Chooser.columns`.

    Args:
      value: the value of the field.
      label_map: see `ReadOptions`. A word in it is a label, and therefore not missing.
    """
    if not isinstance(value, str) or len(value) > LONGEST_MISSING:
        return False
    word = value.strip().lower()
    return word in MISSING and word not in label_map


def has_text(value: Any) -> bool:
    """Return whether a field is filled, also with a word that a person may have written.

    A word that only programs write for a missing value is none.

    Args:
      value: the value of the field.
    """
    return values.is_filled(value) and not (
        is_missing(value, {}) and value.strip().lower() in _WRITTEN
    )


def text_problem(text: str) -> str | None:
    """Return a text from its first NUL or lone surrogate on; None if it has neither."""
    if "\0" in text:
        return text[text.index("\0") :]
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        return text[error.start :]
    return None


def id_text(value: Any) -> bytes:
    """Return an id in UTF-8; it is empty only if the value is missing or empty.

    Lists and objects become JSON. NUL and bytes that are not UTF-8 become escapes such as `\\xfc`.

    Args:
      value: the value of the field.
    """
    text = values.as_text(value)
    if text is None:
        text = values.shown(value)
    if text_problem(text):
        text = "".join(
            _escaped(char) if char == "\0" or "\ud800" <= char <= "\udfff" else char
            for char in text
        )
    return text.encode()


def _converted(value: Any, missing: bytes | int) -> bytes | int:
    text = values.as_text(value)
    if not text or text_problem(text):
        return missing
    if isinstance(missing, bytes):
        return text.encode()
    text = text.strip()
    try:
        # A float would round an integer of more than 53 bits.
        is_integer = text.lstrip("+-").isdecimal()
        number = int(text if is_integer else float(_BOOLEANS.get(text.lower(), text)))
    except (ValueError, OverflowError):
        return missing
    return number if -(2**63) <= number < 2**63 else missing
