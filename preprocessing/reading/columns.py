"""Find the columns of a CSV, JSON lines or Parquet file with the label, the title and the text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from core.errors import InputError
from preprocessing.reading.records import ReadOptions


class Columns(NamedTuple):
    """The names of the columns to read; a title is optional, and so may be a label."""

    label: str | None
    title: str | None
    text: str


@dataclass(frozen=True)
class Layout:
    """The complete instructions for reading one file, without the `auto` values of `ReadOptions`.

    `header` is the header of a CSV file; None for a CSV file without a header and other formats.
    `scale_is_guessed` is True if the scale was inferred from some of the labels. `labels` is
    required or optional, see `ReadOptions`.
    """

    format: str
    columns: Columns | None = None
    label_scale: str = "one_two"
    neutral: str = "leave_out"
    header: tuple[str, ...] | None = None
    scale_is_guessed: bool = False
    labels: str = "required"


# In the order in which they are tried: special names before general ones.
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
HEADERLESS = Columns(_LABEL, _TITLE, _TEXT)  # names for the columns of a file without a header
_SHOWN = 30
# A label column with one of these names holds stars. The scale of other columns is inferred from
# their labels.
STAR_COLUMNS = {label for label, _, _ in _LOWER_CONVENTIONS} - {_LABEL}


def find_columns(path: str, present: Sequence[str], options: ReadOptions) -> Columns:
    """Return the columns to read: those set in `options`, others by their names in known datasets.

    Names are compared first with and then without regard to case. The label may be missing if
    `options.labels` is optional.

    Raises:
        InputError: a column that `options` names is not among `present`; or `options` does not name
            the label or text column, and no known name is among `present`.
    """
    optional = options.labels == "optional"
    if optional and options.label not in present:
        options = replace(options, label=None)
    for setting in (_LABEL, _TITLE, _TEXT):
        name = getattr(options, setting)
        if name is not None and name not in present:
            raise InputError(
                f"{path} has no column '{name}' (data.columns.{setting}): {_columns_text(present)}"
            )
    found = _by_convention({name: name for name in present}, _CONVENTIONS, options)
    if found is None:
        any_case = {name.lower(): name for name in reversed(present)}
        found = _by_convention(any_case, _LOWER_CONVENTIONS, options)
    if found is None and options.label and options.text:
        found = Columns(options.label, options.title, options.text)
    if found is None and optional:
        found = _by_text(present, options)
    if found is None:
        needed = (_TEXT,) if optional else (_LABEL, _TEXT)
        missing = [name for name in needed if getattr(options, name) is None]
        settings = " and ".join(f"data.columns.{name}" for name in missing)
        raise InputError(
            f"{path} has no columns with known names: {_columns_text(present)}; set {settings}"
        )
    return found


def _by_convention(
    names: dict[str, str], conventions: Sequence[tuple[str, str, str]], options: ReadOptions
) -> Columns | None:
    """Return the columns of the first convention whose label and text are in `names`.

    Args:
        names: name as it is compared -> name as it is in the file.
        conventions: the names of label, title and text in known datasets.
        options: the columns that are set, which replace those of the convention.
    """
    for convention in conventions:
        label, title, text = (names.get(name) for name in convention)
        # If the label and the text are set, the convention provides only the title. Then it must
        # have the name of at least one of the two.
        if options.label and options.text and options.label != label and options.text != text:
            continue
        label, text = options.label or label, options.text or text
        if label and text:
            title = options.title or title
            return Columns(label, None if title in (label, text) else title, text)
    return None


def _by_text(present: Sequence[str], options: ReadOptions) -> Columns | None:
    """Return the columns of a file without a known label."""
    any_case = {name.lower(): name for name in reversed(present)}
    if options.text is not None:
        text = options.text
        titles = [title for _, title, name in _LOWER_CONVENTIONS if name == text.lower()]
    else:
        known = [name for _, _, name in _LOWER_CONVENTIONS if name in any_case]
        if not known:
            return None
        text = any_case[known[0]]
        titles = [title for _, title, name in _LOWER_CONVENTIONS if name == known[0]]
    # Several conventions share the name of the text, and differ in that of the title.
    title = options.title or next((any_case[name] for name in titles if name in any_case), None)
    return Columns(options.label, None if title == text else title, text)


def _columns_text(present: Sequence[str]) -> str:
    shown = ", ".join(name[:60] for name in present[:_SHOWN]) or "none"
    more = f" and {len(present) - _SHOWN} more" if len(present) > _SHOWN else ""
    return f"its columns are {shown}{more}"
