"""Read the number of stars from a rating as people and shops write it, in several languages.

Sentiment and `data.labels: stars` read ratings. Otherwise the text of a label is its name.
"""

from __future__ import annotations

import re
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple
from unicodedata import decimal

_FILLED, _EMPTY = "★⭐🌟✭✮✯", "☆✩✰"
_HINT = re.compile(rf"[0-9{_FILLED}]")
_LONGEST = 60
"""The maximum number of characters of a rating."""
_VALUE, _MOST = r"(?P<value>[0-9]{1,9}(?:[.,][0-9]{1,3})?)", r"(?P<most>[0-9]{1,9}(?:[.,]0)?)"
_STARS = (
    r"(?:stars?|sternen?|sterne?|étoiles?|etoiles?|estrellas?|stelle|stella|estrelas?|sterren|ster"
    r"|gwiazd\w*|yıldız\w*|stjärn\w*|stjern\w*|зв[её]зд\w*|зір\w*|hvězd\w*|tähteä|tähti|stele"
    r"|αστέρια|bubbles?|csillag|bintang|sao|ดาว|כוכבים|نجوم|نجمة|نجمات|सितार\S*|स्टार|つ星|颗星|顆星|星"
    r"|★|⭐\ufe0f?)"
)
_OF = (
    r"(?:out of|of|von|sur|de un máximo de|de|su|van|z|ze|av|af|ud af|af|из|з|от|من|od|din|από|dari"
    r"|trên|จาก|מתוך)"
)
_BEFORE = (
    r"(?:(?:rated|rating|stars|score|bewertung|sterne|note|nota|ocena|puntuación|valoración|voto"
    r"|avaliação|beoordeling|betyg|оценка|评分|評価|별점|평점)\s?[:：]?\s?)?"
)
"""A word that may precede a rating."""
_PATTERNS = tuple(
    re.compile(rf"{_BEFORE}{pattern}")
    for pattern in (
        rf"{_VALUE}\s?/\s?{_MOST}(?:\s?{_STARS})?",
        rf"{_VALUE}\s{_OF}\s{_MOST}(?:\s?{_STARS})?",
        rf"{_VALUE}\s?{_STARS}(?:\s{_OF}\s{_MOST})?",
        rf"{_VALUE}-star",
        rf"[{_FILLED}]\ufe0f?\s?{_VALUE}(?:\s?/\s?{_MOST})?",
        # Japanese, Turkish, Hindi and Korean name the scale first.
        rf"{_MOST}\s?つ?星(?:のうち|中)\s?{_VALUE}(?:\s?{_STARS})?",
        rf"{_MOST}\s?点満点中\s?{_VALUE}\s?点?",
        rf"{_MOST}\s?{_STARS}?\s?üzerinden\s{_VALUE}(?:\s?{_STARS})?",
        rf"{_MOST}\sमें से\s{_VALUE}(?:\s?{_STARS})?",
        rf"(?:별표?\s?)?{_MOST}\s?(?:개|점)\s?(?:중|만점에|만점\s?중)\s?{_VALUE}\s?(?:개|점)?",
        rf"{_VALUE}\s?[颗顆]星\s?[，,]\s?最多\s?{_MOST}\s?[颗顆]星",
    )
)


class Rating(NamedTuple):
    """A rating: its value, and the greatest value of its scale if the text names it."""

    value: Decimal
    most: Decimal | None


def find_rating(text: str) -> Rating | None:
    """Return the rating that is the whole of a text, or None.

    Digits of any script are read. A number alone is not a rating. Examples are `4.0 out of 5
    stars`, `4 von 5 Sternen`, `4,0/5`, `5つ星のうち4.0`, `4 stars` and `★★★★☆`.

    Args:
      text: the text, without white space around it.
    """
    if len(text) > _LONGEST:
        return None
    if not text.isascii():
        text = "".join(str(decimal(char)) if char.isdecimal() else char for char in text)
    if not _HINT.search(text):
        return None
    glyphs = _of_glyphs(text.replace("\ufe0f", ""))
    if glyphs:
        return glyphs
    plain = " ".join(text.lower().split())
    for pattern in _PATTERNS:
        if match := pattern.fullmatch(plain):
            groups = match.groupdict()
            most = groups.get("most")
            return Rating(_number(groups["value"]), _number(most) if most else None)
    return None


def _of_glyphs(text: str) -> Rating | None:
    """Return the rating of a text of stars, such as `★★★★☆` or `★★★½`, or None."""
    filled = text.rstrip(_EMPTY)
    half = filled.endswith("½")
    filled = filled.removesuffix("½")
    if not filled or not set(filled) <= set(_FILLED):
        return None
    empty = sum(text.count(star) for star in _EMPTY)
    value = Decimal(len(filled)) + (Decimal("0.5") if half else 0)
    return Rating(value, Decimal(len(filled) + half + empty) if empty else None)


@lru_cache(1_024)  # a file has few spellings of its labels
def stars_of_five(text: str) -> str | None:
    """Return the number of stars in a rating of at most five stars, such as `4` or `4.5`, or None.

    Args:
      text: the text, without white space around it.
    """
    rating = find_rating(text)
    if rating is None or rating.most not in (None, 5) or rating.value > 5:
        return None
    return number_name(rating.value)


def number_name(value: Decimal) -> str:
    """Return a number as the name of a class: `4` and not `4.0`."""
    if value == 0:
        return "0"  # and not "-0"
    name = f"{value:f}"
    return name.rstrip("0").rstrip(".") if "." in name else name


def _number(digits: str) -> Decimal:
    return Decimal(digits.replace(",", "."))
