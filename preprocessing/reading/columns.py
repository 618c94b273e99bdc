"""Find the columns of a CSV, JSON lines or Parquet file with the parts of a review."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from core.errors import InputError
from preprocessing import features
from preprocessing.reading.records import ReadOptions


class NoReviews(InputError):
    """A file in which no reviews were recognised."""


class Columns(NamedTuple):
    """The names of the columns to read; a title is optional, and so may be a label.

    `further` has a name, or None, for each of `features.further_columns`, and the name of
    `ReadOptions.id` if it is set.
    """

    label: str | None
    title: str | None
    text: str
    further: tuple[str | None, ...] = ()


class Dialect(NamedTuple):
    """The syntax of a CSV file.

    Attributes:
      separator: the character between two fields.
      quoted: whether a field may be in quotes. If not, a quote is a character like any other.
      ends_with_cr: whether a line ends with CR alone.
      escaped: whether a backslash and an `n` in a text are read as a line break.
    """

    separator: str = ","
    quoted: bool = True
    ends_with_cr: bool = False
    escaped: bool = False

    @property
    def with_separator(self) -> str:
        """The separator in words, for messages; empty for a comma."""
        return SEPARATORS[self.separator]


SEPARATORS = {
    ",": "",
    "\t": " separated by tabs",
    ";": " separated by semicolons",
    "|": " separated by |",
}
COMMAS = Dialect()


@dataclass(frozen=True)
class Layout:
    """The complete instructions for reading one file, without the `auto` values of `ReadOptions`.

    `label_scale` is one of `labels.SCALES`, unless `label_map` has the meaning of the labels.
    `header` is the header of a CSV file; None for a CSV file without a header and other formats.
    `unused` has the columns that are not read although they have the name of a part of a review.
    `scale_is_guessed` is True if the scale was inferred from some of the labels. `labels` is
    required or optional, see `ReadOptions`.
    """

    format: str
    columns: Columns | None = None
    label_scale: str = "1 and 2"
    label_map: Mapping[str, int | None] = field(default_factory=dict)
    header: tuple[str, ...] | None = None
    dialect: Dialect = COMMAS
    unused: tuple[str, ...] = ()
    scale_is_guessed: bool = False
    labels: str = "required"


# In the order in which they are tried: special names before general ones.
_CONVENTIONS = (
    ("overall", "summary", "reviewText"),  # Amazon reviews until 2018
    ("reviews.rating", "reviews.title", "reviews.text"),  # Datafiniti
    ("star_rating", "review_headline", "review_body"),  # Amazon's own open data
    ("stars", "review_title", "review_body"),  # the multilingual reviews corpus
    ("Score", "Summary", "Text"),  # Amazon fine food reviews
    ("rating", "title", "text"),  # Amazon reviews 2023
    ("rating", "title", "review"),
    ("label", "title", "content"),  # amazon_polarity
    ("label", "title", "text"),
)
_LOWER_CONVENTIONS = [
    (label.lower(), title.lower(), text.lower()) for label, title, text in _CONVENTIONS
]
_KNOWN_NAMES = {name for convention in _LOWER_CONVENTIONS for name in convention}
_LABEL, _TITLE, _TEXT = "label", "title", "text"
HEADERLESS = Columns(_LABEL, _TITLE, _TEXT)  # names for the columns of a file without a header
_SHOWN = 30
# A label column with one of these names holds stars. The scale of other columns is inferred from
# their labels.
STAR_COLUMNS = {label for label, _, _ in _LOWER_CONVENTIONS} - {_LABEL}


def find_columns(
    path: str, present: Sequence[str], options: ReadOptions, separated: str = ""
) -> Columns:
    """Return the columns to read: those set in `options`, others by their names in known datasets.

    Names are compared first with and then without regard to case. The label may be missing if
    `options.labels` is optional, and further columns may always be missing. `separated` describes
    the separator of the columns, for messages.

    Raises:
        NoReviews: a column that `options` names is not among `present`; or `options` does not name
            the label or text column, and no known name is among `present`.
    """
    optional = options.labels == "optional"
    chosen = {part: name for part, name in options.columns.items() if name}
    columns_are = f"its columns{separated} are {_shown(present)}"
    if optional and chosen.get(_LABEL) not in present:
        chosen.pop(_LABEL, None)
    for setting, name in chosen.items():
        if name not in present:
            raise NoReviews(
                f"{path} has no column '{name}' (data.columns.{setting}): {columns_are}"
            )
    any_case = {name.lower(): name for name in reversed(present)}
    found = _by_convention({name: name for name in present}, _CONVENTIONS, chosen)
    if found is None:
        found = _by_convention(any_case, _LOWER_CONVENTIONS, chosen)
    if found is None and _LABEL in chosen and _TEXT in chosen:
        found = Columns(chosen[_LABEL], chosen.get(_TITLE), chosen[_TEXT])
    if found is None and optional:
        found = _by_text(any_case, chosen)
    if found is None:
        needed = (_TEXT,) if optional else (_LABEL, _TEXT)
        settings = " and ".join(f"data.columns.{name}" for name in needed if name not in chosen)
        raise NoReviews(f"{path} has no columns with known names: {columns_are}; set {settings}")
    if options.columns.get(_TITLE, _TITLE) is None:
        found = found._replace(title=None)
    further = [
        chosen.get(name) or next((any_case[known] for known in names if known in any_case), None)
        for name, _, names in features.further_columns()
    ]
    if options.id is not None:
        if options.id not in present:
            raise NoReviews(f"{path} has no column '{options.id}' (--id): {columns_are}")
        further.append(options.id)
    return found._replace(further=tuple(further))


def _by_convention(
    names: Mapping[str, str],
    conventions: Sequence[tuple[str, str, str]],
    chosen: Mapping[str, str],
) -> Columns | None:
    """Return the columns of the first convention whose label and text are in `names`.

    Args:
        names: name as it is compared -> name as it is in the file.
        conventions: the names of label, title and text in known datasets.
        chosen: the columns that are set, which replace those of the convention.
    """
    for convention in conventions:
        known = dict(zip((_LABEL, _TITLE, _TEXT), map(names.get, convention), strict=True))
        # If the label and the text are set, the convention provides only the title. Then it must
        # have the name of at least one of the two.
        if {_LABEL, _TEXT} <= {part for part in chosen if chosen[part] != known.get(part)}:
            continue
        label, title, text = (chosen.get(part) or name for part, name in known.items())
        if label and text:
            return Columns(label, None if title in (label, text) else title, text)
    return None


def _by_text(any_case: Mapping[str, str], chosen: Mapping[str, str]) -> Columns | None:
    """Return the columns of a file without a known label; see `_by_convention`."""
    known = [name for _, _, name in _LOWER_CONVENTIONS if name in any_case]
    text = chosen.get(_TEXT) or (any_case[known[0]] if known else None)
    if text is None:
        return None
    # Several conventions share the name of the text, and differ in that of the title.
    titles = (title for _, title, name in _LOWER_CONVENTIONS if name == text.lower())
    known_title = next((any_case[name] for name in titles if name in any_case), None)
    title = chosen.get(_TITLE) or known_title
    return Columns(chosen.get(_LABEL), None if title == text else title, text)


def unused_columns(present: Sequence[str], columns: Columns) -> tuple[str, ...]:
    """Return the columns that are not read although they have the name of a part of a review."""
    read = {*columns[:3], *columns.further}
    return tuple(name for name in present if name.lower() in _KNOWN_NAMES and name not in read)


def _shown(present: Sequence[str]) -> str:
    shown = ", ".join(name[:60] for name in present[:_SHOWN]) or "none"
    more = f" and {len(present) - _SHOWN} more" if len(present) > _SHOWN else ""
    return f"{shown}{more}"
