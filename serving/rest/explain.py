"""The requests and answers of `/explain`, see `serving.explain`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from serving.explain import Part
from serving.rest.errors import invalid, too_large

MAX_CHARACTERS = 5_000


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


def as_json(parts: Sequence[Part]) -> list[dict[str, Any]]:
    """Return {"text": ...} for each part, with "effect" if the part is a word that was left out."""
    return [
        {"text": part.text} if part.effect is None else {"text": part.text, "effect": part.effect}
        for part in parts
    ]
