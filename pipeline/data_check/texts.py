"""Describe texts: their lengths in words, their writing systems and their duplicates."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from pipeline.data_check.found import Texts
from preprocessing.scripts import separate_syllables

_TEXTS, _LETTERS = 5_000, 200
"""Number of texts, and of characters of each, whose writing system is found."""
_NAMES = {"CJK": "Han", "HIRAGANA": "Kana", "KATAKANA": "Kana"}
"""First word of the name of a letter in Unicode -> its writing system, if it has another name."""
_NONE = "no letters"


def describe_texts(texts: Sequence[bytes], keys: np.ndarray, labels: Sequence[int]) -> Texts:
    """Return the properties of texts.

    Args:
      texts: the texts, in UTF-8.
      keys: the key of each text, uint64 [texts]. Equal texts have equal keys.
      labels: the label of each text.
    """
    if not texts:
        return Texts()
    words = np.array([_number_of_words(text) for text in texts])
    least, median, high, most = np.percentile(words, [0, 50, 95, 100]).astype(int).tolist()
    _, first, numbers, repeated = np.unique(
        keys, return_index=True, return_inverse=True, return_counts=True
    )
    of_each = np.asarray(labels)
    differs = of_each != of_each[first[numbers]]
    has_several = np.bincount(numbers, differs, len(first)) > 0
    return Texts(
        len(texts),
        (least, median, high, most),
        _shares_of_scripts(texts),
        duplicates=len(keys) - len(first),
        contradictions=int(repeated[has_several].sum()),
    )


def _shares_of_scripts(texts: Sequence[bytes]) -> dict[str, float]:
    """Return writing system -> the fraction of texts in it, the most frequent one first.

    Args:
      texts: the texts, in UTF-8. Of many texts, a part at regular distances is inspected.
    """
    step = max(1, len(texts) // _TEXTS)
    scripts = Counter(
        script(text[: 4 * _LETTERS].decode("utf-8", "ignore")) for text in texts[::step]
    )
    return {name: count / scripts.total() for name, count in scripts.most_common()}


def script(text: str) -> str:
    """Return the writing system of most letters of a text, such as `Latin`, `Cyrillic` or `Han`."""
    found = Counter(map(_script_of, text[:_LETTERS]))
    del found[""]
    # Japanese mixes Kana with Han.
    if found["Kana"]:
        return "Japanese"
    return max(found, key=found.__getitem__) if +found else _NONE


def _number_of_words(text: bytes) -> int:
    if text.isascii():
        return len(text.split())
    return len(separate_syllables(text.decode("utf-8", "replace")).split())


@lru_cache(10_000)
def _script_of(letter: str) -> str:
    if not letter.isalpha():
        return ""
    first = unicodedata.name(letter, "").partition(" ")[0]
    return _NAMES.get(first, first.capitalize())
