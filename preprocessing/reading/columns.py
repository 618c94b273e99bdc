"""Which columns of a CSV, JSON lines or Parquet file hold the label, the title and the text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from core.errors import InputError
from preprocessing.reading.records import ReadOptions


class Columns(NamedTuple):
    """Column names; a title is optional."""

    label: str
    title: str | None
    text: str


@dataclass(frozen=True)
class Layout:
    """How one file is to be read: all that `ReadOptions` leaves open is decided.

    `header` is what a CSV file starts with; None when it has no header or is no CSV file.
    `scale_is_guessed` says that the scale was found by looking at labels.
    """

    format: str
    columns: Columns | None = None
    label_scale: str = "one_two"
    neutral: str = "leave_out"
    header: tuple[str, ...] | None = None
    scale_is_guessed: bool = False


# In the order they are tried: what is special comes before what is general.
_CONVENTIONS = (
    ("overall", "summary", "reviewText"),  # Amazon reviews until 2018
    ("reviews.rating", "reviews.title", "reviews.text"),  # Datafiniti
    ("star_rating", "review_headline", "review_body"),  # Amazon's own open data
    ("Score", "Summary", "Text"),  # Amazon fine food reviews
    ("rating", "title", "text"),  # Amazon reviews 2023
    ("rating", "title", "review"),
    ("label", "title", "content"),  # amazon_polarity
    ("label", "title", "text"),
)
_LOWER_CONVENTIONS = [
    (label.lower(), title.lower(), text.lower()) for label, title, text in _CONVENTIONS
]
_LABEL, _TITLE, _TEXT = "label", "title", "text"
HEADERLESS = Columns(_LABEL, _TITLE, _TEXT)  # what to call columns that have no names
_SHOWN = 30
# A label column of these names, in any case, holds stars; what others hold is looked at.
STAR_COLUMNS = {label for label, _, _ in _LOWER_CONVENTIONS} - {_LABEL}


def find_columns(path: str, present: Sequence[str], told: ReadOptions) -> Columns:
    """The columns to read: those that are told, and the rest by the names known datasets use.

    Names are matched as they are written, then without regard to case.

    Raises:
        InputError: a told column is not among `present`, or what is not told is not found.
    """
    for setting in (_LABEL, _TITLE, _TEXT):
        name = getattr(told, setting)
        if name is not None and name not in present:
            raise InputError(
                f"{path} has no column '{name}' (data.columns.{setting}): {_there(present)}"
            )
    found = _by_convention({name: name for name in present}, _CONVENTIONS, told)
    if found is None:
        any_case = {name.lower(): name for name in reversed(present)}
        found = _by_convention(any_case, _LOWER_CONVENTIONS, told)
    if found is None and told.label and told.text:
        found = Columns(told.label, told.title, told.text)
    if found is None:
        missing = [name for name in (_LABEL, _TEXT) if getattr(told, name) is None]
        settings = " and ".join(f"data.columns.{name}" for name in missing)
        raise InputError(
            f"{path}: set {settings}, no known column names are there: {_there(present)}"
        )
    return found


def _by_convention(
    names: dict[str, str], conventions: Sequence[tuple[str, str, str]], told: ReadOptions
) -> Columns | None:
    """The first convention whose label and text are in `names` (as compared -> as written)."""
    for convention in conventions:
        label, title, text = (names.get(name) for name in convention)
        # With both told, a convention is only asked for the title that belongs to them.
        if told.label and told.text and told.label != label and told.text != text:
            continue
        label, text = told.label or label, told.text or text
        if label and text:
            title = told.title or title
            return Columns(label, None if title in (label, text) else title, text)
    return None


def _there(present: Sequence[str]) -> str:
    shown = ", ".join(name[:60] for name in present[:_SHOWN]) or "none"
    more = f" and {len(present) - _SHOWN} more" if len(present) > _SHOWN else ""
    return f"its columns are {shown}{more}"
