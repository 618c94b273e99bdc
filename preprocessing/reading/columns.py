"""Find the columns of a CSV, JSON lines or Parquet file with the parts of a review."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from core.errors import InputError
from preprocessing import features
from preprocessing.reading.records import ReadOptions, shown_names


class MissingColumnsError(InputError):
    """A file without the columns of a label and a text.

    Args:
      message: the message.
      present: the names of the columns that it has.
    """

    def __init__(self, message: str, present: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.present = tuple(present)


class Columns(NamedTuple):
    """The names of the columns to read.

    The title is None if the file has none. The label may be missing as well if labels are not read.
    `further` has a name, or None, for each of `features.further_columns`. `id` is
    `ReadOptions.id`. `by_label` is true if the column of the label decides the title and the text:
    other columns would be read in the file without it.
    """

    label: str | None
    title: str | None
    text: str
    further: tuple[str | None, ...] = ()
    id: str | None = None
    by_label: bool = False

    @property
    def roles(self) -> dict[str, str | None]:
        """`label`, `title` and `text` -> the name of the column; None for a missing one."""
        return {LABEL: self.label, TITLE: self.title, TEXT: self.text}

    @property
    def names(self) -> tuple[str | None, ...]:
        """Label, title, text, further columns and id; None for a missing one."""
        return (self.label, self.title, self.text, *self.further, self.id)


class Dialect(NamedTuple):
    """The syntax of a CSV file.

    Attributes:
      separator: the character between the fields.
      quoted: whether a field may be in quotes. If not, a quote is a character like any other.
      skips_blanks: whether blanks after a separator are skipped.
      escapes: the characters before which a backslash is no part of the text: a backslash, which is
        the first one, a quote, a separator, a line break, and `n`, `r` and `t`, which mean white
        space.
    """

    separator: str = ","
    quoted: bool = True
    skips_blanks: bool = False
    escapes: str = ""


SEPARATORS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "|"}
"""The separators of CSV files, the most frequent one first -> their names in a message."""
COMMAS = Dialect()


@dataclass(frozen=True)
class Layout:
    """The complete instructions for reading one file, without the `auto` values of `ReadOptions`.

    A record is read by `columns` if they contain a label and a text, and otherwise by the columns
    that the record fills, see `choice`.

    Attributes:
      format: `fasttext`, `csv`, `jsonl`, `parquet`, or `empty` for a file without content, such
        as one that is blank or damaged from its start.
      columns: the columns of most records; None for a format without columns.
      label_scale: the scale of the labels in `columns.label`, one of `labels.SCALES`. It has no
        effect if `label_map` is not empty.
      label_map: label -> meaning, see `ReadOptions`; empty if `label_scale` defines the meanings.
      header: the header of a CSV file, its own or that of another file; None for a CSV file that is
        read by position, and for other formats.
      header_of: the name of the file that has the header; empty if the file has its own, or none.
      dialect: the syntax of a CSV file.
      scale_is_guessed: True if the scale was inferred from some of the labels.
      reads_labels: see `ReadOptions`.
      other_scale: the scale of the labels in other columns than `columns.label`. It has no effect
        on columns with the name of a rating, which contain stars.
      chosen: `ReadOptions.columns`, which no other column replaces.
      collected: the `labels.CollectedLabels` that gets the labels while the classes are not known;
        None: labels have the meanings above.
      keeps_case: whether labels that differ in case are different; `label_map` then has them as
        `labels.label_name` returns them.
      class_names: the name of each of the numbers 0, 1, ... in `columns.label`; empty if numbers
        have no names.
      missing: the number that marks a missing label, `-1` or empty; see `layouts`.
      alternatives: the columns of other records in the head of the file.
      beside: the names of the columns that are filled in records with a text in the head of the
        file.
    """

    format: str
    columns: Columns | None = None
    label_scale: str = "1 and 2"
    label_map: Mapping[str, int | None] = field(default_factory=dict)
    header: tuple[str, ...] | None = None
    header_of: str = ""
    dialect: Dialect = COMMAS
    scale_is_guessed: bool = False
    reads_labels: bool = True
    other_scale: str = "words"
    chosen: Mapping[str, str | None] = field(default_factory=dict)
    collected: Any = field(default=None, compare=False)
    keeps_case: bool = False
    class_names: tuple[str, ...] = ()
    missing: str = ""
    alternatives: tuple[Columns, ...] = ()
    beside: tuple[str, ...] = ()


class Convention(NamedTuple):
    """The names of the label, the title and the text in known datasets, in lower case.

    The title is None if a dataset has none.
    """

    label: str
    title: str | None
    text: str


SCORE = "score"
LABEL, TITLE, TEXT = ROLES = "label", "title", "text"
HEADERLESS = Columns(LABEL, TITLE, TEXT)  # names for the columns of a file without a header
CONVENTIONS = (
    Convention("overall", "summary", "reviewtext"),  # Amazon reviews until 2018
    # Datafiniti, "Product Reviews" as CSV
    Convention("reviews.rating", "reviews.title", "reviews.text"),
    Convention("star_rating", "review_headline", "review_body"),  # Amazon's own open data
    # Google Play Console, monthly CSV of reviews
    Convention("star rating", "review title", "review text"),
    Convention("stars", "review_title", "review_body"),  # the multilingual reviews corpus
    Convention("score", "summary", "text"),  # Amazon fine food reviews
    Convention("rating", "title", "text"),  # Amazon reviews 2023
    Convention("rating", "title", "review"),
    Convention("rating", "title", "body"),  # App Store Connect API, CustomerReview.Attributes
    # The same, as pandas' `json_normalize` flattens the responses of the API
    Convention("attributes.rating", "attributes.title", "attributes.body"),
    Convention("stars", "title", "text"),  # Yelp; Trustpilot's API, "Get a business unit's reviews"
    Convention("score", None, "content"),  # the package google-play-scraper, `reviews`
    Convention("star", None, "review"),  # app_reviews on Hugging Face, its loading script
    Convention("voted_up", None, "review"),  # Steamworks, "User Reviews - Get List"
    Convention(LABEL, TITLE, "content"),  # amazon_polarity
    Convention(LABEL, TITLE, TEXT),
)
"""Special names precede general ones: if two conventions fit equally well, the first one is read.
No record is read by names that mean something else beside reviews, such as `comment`, the answer of
a shop, or `description`, that of a product: they are GENERAL."""
GENERAL = (
    # Zendesk API, "Tickets", flattened
    Convention("satisfaction_rating.score", "subject", "description"),
    Convention("score", None, "comment"),  # Zendesk API, "Satisfaction Ratings"
    Convention("sentiment", None, "review"),  # the IMDB reviews on Kaggle
    Convention("sentiment", None, TEXT),
    Convention(LABEL, None, "sentence"),  # sst2 and financial_phrasebank on Hugging Face
)
"""Further names, for files without the columns of one of CONVENTIONS. Such a file is read as if
`data.columns` set them."""
KNOWN_LABELS = frozenset(names.label for names in CONVENTIONS)
KNOWN_TEXTS = frozenset(names.text for names in CONVENTIONS)
# A label column with one of these names contains stars. The scale of other columns is inferred from
# their labels.
STAR_COLUMNS = KNOWN_LABELS - {LABEL, "voted_up"}


def find_columns(path: str, present: Sequence[str], options: ReadOptions) -> Columns:
    """Return the columns to read: those in `options`, and others by their names in known datasets.

    The case of letters is ignored in names of known datasets. The title and further columns may be
    missing, and so may the label if labels are not read.

    Args:
      path: the file, for the error.
      present: the names of its columns.
      options: the options for reading it.

    Raises:
      MissingColumnsError: a column that `options` names is missing, or no columns have the names of
        a text and a label.
      InputError: two columns have the name of one that is read.
    """
    chosen = {part: name for part, name in options.columns.items() if name}
    columns_are = f"its columns are {shown_names(present)}"
    if not options.reads_labels and chosen.get(LABEL) not in present:
        chosen.pop(LABEL, None)
    wanted = {f"data.columns.{part}": name for part, name in chosen.items()}
    for setting, name in (wanted | ({"--id": options.id} if options.id else {})).items():
        if name not in present:
            raise MissingColumnsError(
                f"{path} has no column '{name}' ({setting}): {columns_are}", present
            )
    by_name = names_in_lower_case(present)
    found = _known_columns(by_name, chosen, options.reads_labels)
    trained = _as_trained(by_name, options)
    if trained:
        found = trained._replace(label=found.label if found else None)
    if found is None:
        needed = (LABEL, TEXT) if options.reads_labels else (TEXT,)
        settings = " and ".join(f"data.columns.{name}" for name in needed if name not in chosen)
        raise MissingColumnsError(
            f"{path} has no columns with known names: {columns_are}; set {settings}", present
        )
    if options.columns.get(TITLE, TITLE) is None:
        found = found._replace(title=None)
    elif options.reads_labels:
        others = {name: of_file for name, of_file in by_name.items() if of_file != found.label}
        parts = {part: name for part, name in chosen.items() if part != LABEL}
        without = _known_columns(others, parts, needs_label=False)
        differs = without is not None and (without.title, without.text) != (
            found.title,
            found.text,
        )
        found = found._replace(by_label=differs)
    found = found._replace(further=further_names(by_name, chosen), id=options.id)
    for column in found.names:
        if column and (number := list(present).count(column)) > 1:
            raise InputError(
                f"{path} has {number} columns with the name '{column}': rename or remove all but "
                "one"
            )
    return found


def _known_columns(
    by_name: Mapping[str, str], chosen: Mapping[str, str | None], needs_label: bool
) -> Columns | None:
    """Return the columns of one of CONVENTIONS, or else of GENERAL; None without such a file.

    Args:
      by_name: name in lower case -> name in the file.
      chosen: see `candidates`.
      needs_label: whether a column of labels is required.
    """
    found = _best(candidates(by_name, chosen), needs_label)
    return found or _best(candidates(by_name, chosen, GENERAL), needs_label)


def _as_trained(by_name: Mapping[str, str], options: ReadOptions) -> Columns | None:
    """Return the title and the text by `ReadOptions.trained`; None if none of them applies.

    Args:
      by_name: name in lower case -> name in the file.
      options: the options for reading it.
    """
    if options.reads_labels or TITLE in options.columns:
        return None
    for title, text in options.trained:
        has_both = text in by_name and (not title or title in by_name)
        if has_both and by_name[text] == (options.columns.get(TEXT) or by_name[text]):
            return Columns(None, by_name[title] if title else None, by_name[text], by_label=True)
    return None


def _best(found: Sequence[Columns], needs_label: bool) -> Columns | None:
    """Return the first columns with the most parts of a review; None if all lack a required one.

    Another label precedes a `score`, which may be the confidence of a classifier beside it.
    """
    # Several conventions share the name of the text, and differ in the other names.
    complete = [columns for columns in found if columns.text and (columns.label or not needs_label)]
    best = max(complete, key=lambda one: (bool(one.label), bool(one.title)), default=None)
    if best is None or (best.label or "").lower() != SCORE:
        return best
    for one in sorted(complete, key=lambda one: (one.label or "").lower() != LABEL):
        if one.text == best.text and (one.label or SCORE).lower() != SCORE:
            return best._replace(label=one.label, title=one.title or best.title)
    return best


def set_columns(columns: Columns | None, options: ReadOptions) -> dict[str, str | None]:
    """Return `Layout.chosen`: `options.columns`, and the columns of a file with GENERAL names.

    Args:
      columns: the columns of the file; None for a file without columns.
      options: the options for reading it.
    """
    if columns is None or _fits(columns, CONVENTIONS) or not _fits(columns, GENERAL):
        return dict(options.columns)
    return {role: name for role, name in columns.roles.items() if name} | dict(options.columns)


def _fits(columns: Columns, conventions: Sequence[Convention]) -> bool:
    """Return whether the label, unless it is missing, and the text are those of a convention."""
    label, text = (columns.label or "").lower(), columns.text.lower()
    return any(text == names.text and label in ("", names.label) for names in conventions)


def names_of(records: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the names of the columns of some records, in the order in which they occur.

    Args:
      records: the records, column -> value.
    """
    return list(dict.fromkeys(name for record in records for name in record))


def names_in_lower_case(present: Sequence[str]) -> dict[str, str]:
    """Return name in lower case -> name in the file.

    Of several spellings of a name, the one in lower case is used, or else the first one.
    """
    by_name = {name.lower(): name for name in reversed(present)}
    return by_name | {name: name for name in present if name in by_name}


def candidates(
    by_name: Mapping[str, str],
    chosen: Mapping[str, str | None],
    conventions: Sequence[Convention] = CONVENTIONS,
) -> list[Columns]:
    """Return the columns of a file for each convention, in the order of the conventions.

    If the file lacks the text of a convention, `Columns.text` is empty.

    Args:
      by_name: name in lower case -> name in the file.
      chosen: `label`, `title` or `text` -> the column that replaces the one of each convention;
        None: no column is read.
      conventions: CONVENTIONS or GENERAL.
    """
    found = []
    for convention in conventions:
        named = (name and by_name.get(name) for name in convention)
        known = dict(zip(ROLES, named, strict=True))
        label, title, text = ({**known, **chosen}.get(role) for role in ROLES)
        # If the label and the text are set, the convention provides only the title. Then it must
        # have the name of at least one of the two.
        has_text = TEXT not in chosen or (text and known[TEXT] == text)
        if has_text or (label and known[LABEL] == label):
            found.append(Columns(label, None if title in (label, text) else title, text or ""))
    if TEXT in chosen:
        own_text = chosen[TEXT] or ""
        found.append(Columns(chosen.get(LABEL), chosen.get(TITLE), own_text))
    return found


def further_names(
    by_name: Mapping[str, str], chosen: Mapping[str, str | None]
) -> tuple[str | None, ...]:
    """Return the name of each of `features.further_columns` in the file; None if it is missing.

    Args:
      by_name: name in lower case -> name in the file.
      chosen: column of the Examples -> the name that is set for it.
    """
    return tuple(
        chosen.get(name) or next((by_name[known] for known in names if known in by_name), None)
        for name, _, names in features.further_columns()
    )
