"""Find the columns of a CSV, JSON lines or Parquet file with the parts of a review."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from core.errors import InputError
from preprocessing import features
from preprocessing.reading.records import ReadOptions, shown_names


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
    """The syntax of a CSV file."""

    separator: str = ","
    quoted: bool = True  # if not, a quote is a character like any other
    skips_blanks: bool = False  # whether blanks behind a separator belong to no field


SEPARATORS = {
    ",": "",
    "\t": " separated by tabs",
    ";": " separated by semicolons",
    "|": " separated by |",
}
"""Character -> its description, empty for the usual one."""
COMMAS = Dialect()


@dataclass(frozen=True)
class Layout:
    """The complete instructions for reading one file, without the `auto` values of `ReadOptions`.

    `label_scale` is one of `labels.SCALES`, unless `label_map` has the meaning of the labels.
    `header` is the header of a CSV file; None for a CSV file without a header and other formats.
    `scale_is_guessed` is True if the scale was inferred from some of the labels. `labels` is
    required or optional, see `ReadOptions`.
    """

    format: str
    columns: Columns | None = None
    label_scale: str = "1 and 2"
    label_map: Mapping[str, int | None] = field(default_factory=dict)
    header: tuple[str, ...] | None = None
    dialect: Dialect = COMMAS
    scale_is_guessed: bool = False
    labels: str = "required"


_LABEL, _TITLE, _TEXT = "label", "title", "text"
HEADERLESS = Columns(_LABEL, _TITLE, _TEXT)  # names for the columns of a file without a header
# In lower case, special names before general ones.
_CONVENTIONS = (
    ("overall", "summary", "reviewtext"),  # Amazon reviews until 2018
    ("reviews.rating", "reviews.title", "reviews.text"),  # Datafiniti
    ("star_rating", "review_headline", "review_body"),  # Amazon's own open data
    ("stars", "review_title", "review_body"),  # the multilingual reviews corpus
    ("score", "summary", "text"),  # Amazon fine food reviews
    ("rating", "title", "text"),  # Amazon reviews 2023
    ("rating", "title", "review"),
    (_LABEL, _TITLE, "content"),  # amazon_polarity
    (_LABEL, _TITLE, _TEXT),
)
# A label column with one of these names holds stars. The scale of other columns is inferred from
# their labels.
STAR_COLUMNS = {label for label, _, _ in _CONVENTIONS} - {_LABEL}


def find_columns(path: str, present: Sequence[str], options: ReadOptions) -> Columns:
    """Return the columns to read: those set in `options`, others by their names in known datasets.

    Names are compared without regard to case. The label may be missing if `options.labels` is
    optional, and further columns may always be missing. Other missing columns are an InputError.
    """
    optional = options.labels == "optional"
    chosen = {part: name for part, name in options.columns.items() if name}
    columns_are = f"its columns are {shown_names(present)}"
    if optional and chosen.get(_LABEL) not in present:
        chosen.pop(_LABEL, None)
    wanted = {f"data.columns.{part}": name for part, name in chosen.items()}
    for setting, name in (wanted | ({"--id": options.id} if options.id else {})).items():
        if name not in present:
            raise InputError(f"{path} has no column '{name}' ({setting}): {columns_are}")
    by_name = {name.lower(): name for name in reversed(present)}
    found = _by_convention(by_name, chosen, optional)
    if found is None:
        needed = (_TEXT,) if optional else (_LABEL, _TEXT)
        settings = " and ".join(f"data.columns.{name}" for name in needed if name not in chosen)
        raise InputError(f"{path} has no columns with known names: {columns_are}; set {settings}")
    if options.columns.get(_TITLE, _TITLE) is None:
        found = found._replace(title=None)
    further = [
        chosen.get(name) or next((by_name[known] for known in names if known in by_name), None)
        for name, _, names in features.further_columns()
    ]
    return found._replace(further=(*further, options.id) if options.id else tuple(further))


def _by_convention(
    by_name: Mapping[str, str], chosen: Mapping[str, str], optional: bool
) -> Columns | None:
    """Return the columns of the first convention that has most of them; None without a text.

    `by_name` has the name in the file of each name in lower case. The columns that are set, in
    `chosen`, replace those of a convention. With `optional` a text needs no label.
    """
    found = []
    parts = (_LABEL, _TITLE, _TEXT)
    for convention in _CONVENTIONS:
        known = dict(zip(parts, map(by_name.get, convention), strict=True))
        label, title, text = ({**known, **chosen}.get(part) for part in parts)
        # If the label and the text are set, the convention provides only the title. Then it must
        # have the name of at least one of the two.
        if text and (known[_TEXT] == text or (label and known[_LABEL] == label)):
            found.append(Columns(label, None if title in (label, text) else title, text))
    if _TEXT in chosen:
        found.append(Columns(chosen.get(_LABEL), chosen.get(_TITLE), chosen[_TEXT]))
    # Several conventions share the name of the text, and differ in the other names.
    complete = [columns for columns in found if columns.label or optional]
    return max(complete, key=lambda found: (bool(found.label), bool(found.title)), default=None)
