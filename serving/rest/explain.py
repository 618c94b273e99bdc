"""The words that contribute to a prediction, for any model: each word is left out once.

The effect of a word is the logit of the review minus the logit of the review without the word. A
positive effect means that the word makes the review more positive. The effects do not add up:
words that depend on each other share theirs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from serving.rest.errors import invalid, too_large

MAX_CHARACTERS = 5_000
MAX_WORDS = 100
"""Words of a review that are left out, from its beginning."""
_WORD = re.compile(r"\S+")
_SMALLEST = 1e-7
"""Least distance of a probability from 0 and 1, about the precision of a float32 near 1."""


def parse_explain(document: Mapping[str, Any]) -> str:
    """Return the review in the JSON object of a request.

    Raises:
      ApiError: it is not a text, or too long.
    """
    text = document.get("text")
    if not isinstance(text, str) or set(document) != {"text"}:
        raise invalid('The request must be {"text": REVIEW}')
    if not text.strip():
        raise invalid("The review is empty")
    if len(text) > MAX_CHARACTERS:
        raise too_large(f"The review is longer than {MAX_CHARACTERS:,} characters")
    return text


def variants(text: str, words: int = MAX_WORDS) -> list[bytes]:
    """Return the review, and the review without each of its first `words` words."""
    spans = list(_WORD.finditer(text))[:words]
    without = [text[: span.start()] + text[span.end() :] for span in spans]
    return [variant.encode() for variant in (text, *without)]


def parts(text: str, probabilities: list[float]) -> list[dict[str, Any]]:
    """Return the parts of the review, which joined are the review again.

    Args:
      text: the review.
      probabilities: of its `variants`.

    Returns:
      {"text": ...} for each part, with "effect" if the part is a word that was left out.
    """
    whole, *without = (_logit(probability) for probability in probabilities)
    found: list[dict[str, Any]] = []
    end = 0
    for span, logit in zip(_WORD.finditer(text), without, strict=False):
        if span.start() > end:
            found.append({"text": text[end : span.start()]})
        found.append({"text": span[0], "effect": round(whole - logit, 4)})
        end = span.end()
    if end < len(text):
        found.append({"text": text[end:]})
    return found


def _logit(probability: float) -> float:
    bounded = min(max(probability, _SMALLEST), 1 - _SMALLEST)
    return math.log(bounded / (1 - bounded))
