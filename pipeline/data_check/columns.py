"""Propose columns for the label, the title and the text of a file whose names are unknown."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from preprocessing.reading.choice import Chooser
from preprocessing.reading.columns import HEADERLESS, LABEL, TEXT, TITLE, Columns, Layout
from preprocessing.reading.first_records import are_lists
from preprocessing.reading.labels import (
    KNOWN_WORDS,
    NUMBERS,
    as_number,
    label_name,
    scale_label,
)
from preprocessing.reading.listing import joined
from preprocessing.reading.look import Table
from preprocessing.reading.ratings import find_rating
from preprocessing.reading.records import ReadOptions, printable
from preprocessing.reading.values import is_filled, shown

_EXAMPLE = 60
"""The maximum number of characters of an example."""
_MIN_FILLED, _MIN_WORDS, _SIMILAR = 0.2, 2.5, 0.4
"""Minimum fraction of records that fill a text, minimum mean number of its words, and the minimum
length of another possible text, as a fraction of that of the longest one."""
_NAMED = 3
"""The maximum number of labels that describe a column."""
_MOST_LABELS, _LONGEST_LABEL = 100, 60
_TITLE = re.compile(
    r"title|subject|headline|summary|titel|betreff|überschrift|objet|titre|asunto|t[ií]tulo"
    r"|oggetto|titolo|onderwerp|temat|tytu[łl]|název|cím\b|konu|başlık|overskrift|rubrik|titlu"
    r"|тема|заголовок|件名|タイトル|标题|標題|제목",
    re.IGNORECASE,
)
_OTHER_TITLE = re.compile(
    r"(job|product|item|movie|film|book|game|song|album|app|course|video|show|hotel)[\s_.-]*title",
    re.IGNORECASE,
)
"""The title of something else than the text, which would become a part of each text."""
_TEXT = re.compile(
    r"review(?!er)|comment|feedback|(?<!con)text|body|content|message|opinion|tweet|verbatim"
    r"|rezension|kommentar|nachricht|inhalt|commentaire|\bavis\b|comentario|reseña"
    r"|mensaje|recensione|commento|comentário|mensagem|recensie|opinia|recenzj|treść|yorum|ulasan"
    r"|отзыв|текст|комментари|评论|評論|内容|內容|正文|レビュー|コメント|本文|리뷰|댓글|내용|본문",
    re.IGNORECASE,
)
_NO_TEXT = re.compile(
    r"date|time(?!nt)|name|\bids?\b|_ids?$|url|link|author|count|number", re.IGNORECASE
)
_NAMED_TEXT = 10
"""How many times as long another column is that is as likely the text as one with such a name."""
_ANSWER = re.compile(r"reply|response|antwort|answer|réponse|respuesta|risposta", re.IGNORECASE)
_RATING = re.compile(
    r"label|rating|(?<![a-z])rate(?![a-z])|score|\bnps\b|stars?\b|sentiment|polarit|target|grade"
    r"|recommend|bewertung|stimmung|sterne|note|étoiles|étiquette|sentimi?ento|polaridad|puntua"
    r"|valorac|calific|estrellas|etiqueta|voto|stelle|etichetta|nota|avalia|rótulo|beoordeling"
    r"|ocena|gwiazd|etykieta|duygu|etiket|puan|sentimen\b|nhãn|оценка|тональность|метка|标签|標籤"
    r"|评分|評分|星级|情感|評価|感情|ラベル|별점|평점|감정|라벨|레이블",
    re.IGNORECASE,
)
_TOPIC = re.compile(
    r"class|category|topic|intent|reason|kategorie|thema|anliegen|catégorie|categor|категория|類別",
    re.IGNORECASE,
)
_AVERAGE = re.compile(r"average|avg|mean(?![a-z])|durchschnitt|promedio|moyenne", re.IGNORECASE)
"""The rating of a product or a place, which many reviews share."""
_OTHER_LABEL = re.compile(r"priority|type|queue|team|group|department|tag|art\b|grund", re.I)
_DATE = re.compile(r"[0-9]{1,4}[-./][0-9]{1,2}[-./][0-9]{1,4}([T ].*)?")
_NO_LABEL = re.compile(
    r"\bid\b|_id$|date|time|lang|countr|territory|locale|version|device|brand|store|channel|status"
    r"|name|user|helpful|vote|count|verified|agent|sprache|land\b|datum"
    r"|bearbeiter|eingang|erstellt",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Candidate:
    """A column that may have a role: its name, and the value of a field, or its labels."""

    name: str
    example: str
    rank: float


@dataclass(frozen=True)
class Proposal:
    """The columns that may have each role; the most likely one is the first."""

    label: tuple[Candidate, ...]
    title: tuple[Candidate, ...]
    text: tuple[Candidate, ...]

    def ambiguous(self, role: str) -> bool:
        """Return whether two columns are about as likely as each other."""
        found = self.label if role == LABEL else self.text
        return len(found) > 1 and found[1].rank >= _SIMILAR * found[0].rank

    def columns(self) -> dict[str, str]:
        """Return `data.columns` with the most likely column of each role that has one."""
        roles = {LABEL: self.label, TITLE: self.title, TEXT: self.text}
        return {role: found[0].name for role, found in roles.items() if found}


def propose(table: Table, options: ReadOptions) -> Proposal:
    """Return the columns that may have each role; those that are set or known come first.

    Args:
      table: the first records of a file.
      options: the options for reading it.
    """
    names = [name for name in table.names if name not in nested_columns(table)]
    chooser = Chooser(Layout(table.format, HEADERLESS, chosen=dict(options.columns)))
    texts = [_candidate(table, name, 1) for name in chooser.texts(names)]
    if not texts:
        texts = _texts(table, set(chooser.labels(names)), _NAMED_TEXT)
    texts = [one for one in texts if not _TITLE.search(one.name)] or texts
    first = texts[0].name if texts else None
    titles = [
        _candidate(table, name, 1)
        for name in names
        if _is_title(name) and _mean_words(table, name) >= 1 and name != first
    ]
    labels = [_candidate(table, name, 1) for name in chooser.labels(names) if name != first]
    if not labels:
        labels = _labels(table, {one.name for one in [*texts, *titles]})
    if options.columns.get(TITLE, TITLE) is None:
        titles = []
    return Proposal(tuple(labels), tuple(titles[:1]), tuple(texts))


def other_texts(table: Table, columns: Columns) -> list[Candidate]:
    """Return the column that is read as the text, and others that are about as likely the text.

    Args:
      table: the first records of the file.
      columns: the columns that are read.
    """
    used = {name for name in (columns.label, columns.title) if name}
    # A record without a text in the column of the file is read by the other known names.
    known = set(Chooser(Layout(table.format, columns)).texts(table.names)) - {columns.text}
    found = [one for one in _texts(table, used | known, 1) if not _TITLE.search(one.name)]
    own = next((one for one in found if one.name == columns.text), None)
    if own is None:
        return []
    return [own, *(one for one in found if one != own and one.rank >= _SIMILAR * own.rank)]


def example(values: Sequence[Any]) -> str:
    """Return the first filled value as a short text; empty if there is none."""
    value = next(filter(is_filled, values), None)
    text = printable(" ".join(shown(value).split()))
    return text if len(text) <= _EXAMPLE else f"{text[: _EXAMPLE - 3]}..."


def nested_columns(table: Table) -> list[str]:
    """Return the columns of JSON lines that contain objects or lists, which no run reads.

    Args:
      table: the records.
    """
    return [
        name
        for name in table.names
        if any(isinstance(value, (dict, list)) for value in values_of(table, name))
    ]


def values_of(table: Table, name: str) -> list[Any]:
    """Return the filled values of a column.

    Args:
      table: the records.
      name: the name of the column.
    """
    return [record[name] for record in table.records if is_filled(record.get(name))]


def _is_title(name: str) -> bool:
    return bool(_TITLE.search(name)) and not _OTHER_TITLE.search(name)


def _candidate(table: Table, name: str, rank: float) -> Candidate:
    return Candidate(name, example(values_of(table, name)), rank)


def _mean_words(table: Table, name: str) -> float:
    values = [value for value in values_of(table, name) if isinstance(value, str)]
    return fmean(_words(value) for value in values) if values else 0


def _words(value: str) -> float:
    # Chinese and Japanese have no blanks between words.
    wide = sum(char > "\u2e80" for char in value[:500])
    return len(value.split()) + wide / 2


def _has_letter(value: str) -> bool:
    return any(map(str.isalpha, value))


def _texts(table: Table, labels: set[str], named: float) -> list[Candidate]:
    """Return the columns with sentences, those with the longest ones first.

    Args:
      table: the records.
      labels: the columns that are no texts.
      named: the factor for the length of the texts in a column with the name of a text.
    """
    found = []
    for name in table.names:
        values = [value for value in values_of(table, name) if isinstance(value, str)]
        is_rare = len(values) < _MIN_FILLED * len(table.records)
        if name in labels or not values or (is_rare and len(table.names) > 2):
            continue
        words = _mean_words(table, name)
        is_varied = len(set(values)) >= max(2, len(values) / 4)
        if not any(map(_has_letter, values)):
            continue  # lists of numbers, such as the ids of the posts about a text
        if words < _MIN_WORDS or not is_varied or are_lists(values):
            continue
        rank = words * len(values) / len(table.records)
        if _ANSWER.search(name):
            rank /= 4
        elif _TEXT.search(name) and not _NO_TEXT.search(name):
            rank *= named
        found.append(_candidate(table, name, rank))
    found.sort(key=lambda one: -one.rank)
    return found


def _labels(table: Table, others: set[str]) -> list[Candidate]:
    """Return the columns with few different short values, the most likely ones first."""
    found = []
    for name in table.names:
        values = values_of(table, name)
        labels: Counter[str] = Counter(filter(None, map(label_name, values)))
        if name in others or labels.total() < len(table.records) / 2:
            continue
        longest = max(map(len, labels))
        is_id = len(labels) > _MOST_LABELS or 2 * len(labels) > labels.total()
        if all(map(_DATE.fullmatch, labels)):
            continue
        is_named = bool(_RATING.search(name) or _TOPIC.search(name))
        # The beginning of a file that is sorted by its labels has one of them.
        is_usual = len(labels) > 1 or is_named
        if not is_usual or longest > _LONGEST_LABEL or (is_id and not is_named):
            continue
        rank = _label_rank(name, values, labels) * labels.total() / len(table.records)
        if len(labels) == 1 or _AVERAGE.search(name):
            rank /= 2
        shown = joined([label for label, _ in labels.most_common()], _NAMED)
        found.append(Candidate(name, f"{len(labels)} labels: {printable(shown)}", rank))
    found.sort(key=lambda one: -one.rank)
    return found


def _label_rank(name: str, values: Sequence[Any], labels: Iterable[str]) -> float:
    """Return how likely a column contains the labels, by its name and its values.

    Args:
      name: the name of the column.
      values: its filled values.
      labels: the labels among them.
    """
    known = {*map(scale_label, labels)} <= {*NUMBERS, *KNOWN_WORDS, "true", "false"}
    if _RATING.search(name):
        return 8 if known else 7
    if _TOPIC.search(name):
        return 6
    if _OTHER_LABEL.search(name):
        return 3
    if _NO_LABEL.search(name):
        return 0.3
    if all(find_rating(shown(value).strip()) for value in values):
        return 8
    numbers = [as_number(label) for label in labels]
    found = {number for number in numbers if number is not None}
    if known or None in numbers:
        return 1
    # Numbers without a gap may be those of classes. Other numbers than those of a scale are counts,
    # such as the votes for a review.
    return 0.5 if found == {min(found) + number for number in range(len(found))} else 0.3
