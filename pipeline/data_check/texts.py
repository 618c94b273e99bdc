"""Describe texts: their lengths in words, their writing systems and their duplicates."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

from core.overrides import dump_yaml
from pipeline.data_check.found import Problem, Texts

_TEXTS, _LETTERS = 5_000, 200
"""Number of texts, and of characters of each, whose writing system is found."""
_NAMES = {"CJK": "Han", "HIRAGANA": "Kana", "KATAKANA": "Kana"}
"""First word of the name of a letter in Unicode -> its writing system, if it has another name."""
_NONE = "no letters"
_WITHOUT_BLANKS = ("Han", "Japanese", "Thai", "Lao", "Khmer", "Myanmar", "Tibetan")
"""Writing systems without blanks between words."""
_MANY = 0.1
"""The fraction of texts in these writing systems for which n-grams of characters are proposed."""
_CHARACTERS = [2, 3]
"""The lengths of n-grams of characters that are proposed. A word in these writing systems has about
two characters; the laboratory journal has the measurements."""


def describe_texts(texts: Sequence[bytes], keys: np.ndarray, labels: Sequence[int]) -> Texts:
    """Return the properties of texts.

    Args:
      texts: the texts, in UTF-8.
      keys: the key of each text, uint64 [texts]. Equal texts have equal keys.
      labels: the label of each text.
    """
    if not texts:
        return Texts()
    words = np.array([len(text.split()) for text in texts])
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
        shares_of_scripts(texts),
        duplicates=len(keys) - len(first),
        contradictions=int(repeated[has_several].sum()),
    )


def shares_of_scripts(texts: Sequence[bytes]) -> dict[str, float]:
    """Return writing system -> the fraction of texts in it, the most frequent one first.

    Args:
      texts: the texts, in UTF-8. Of many texts, a part at regular distances is inspected.
    """
    step = max(1, len(texts) // _TEXTS)
    scripts = Counter(
        script(text[: 4 * _LETTERS].decode("utf-8", "ignore")) for text in texts[::step]
    )
    return {name: count / scripts.total() for name, count in scripts.most_common()}


def without_blanks(scripts: Mapping[str, float]) -> tuple[Problem, dict[str, list[int]]] | None:
    """Return the note about texts without blanks between words; None if there are few of them.

    Args:
      scripts: the result of `shares_of_scripts`.

    Returns:
      The note, and key in `transform` -> its value.
    """
    found = {name: scripts[name] for name in _WITHOUT_BLANKS if name in scripts}
    share = sum(found.values())
    if share < _MANY:
        return None
    changes = {"character_ngrams": _CHARACTERS}
    message = (
        f"{share:.0%} of the texts have no blanks between words ({', '.join(found)}), so a model "
        "would read a whole clause as one word: set transform.character_ngrams, with which the "
        "models ngram_linear, deep_averaging and wide_and_deep read parts of it"
    )
    return Problem(message, dump_yaml({"transform": changes}), is_blocking=False), changes


def script(text: str) -> str:
    """Return the writing system of most letters of a text, such as `Latin`, `Cyrillic` or `Han`."""
    found = Counter(map(_script_of, text[:_LETTERS]))
    del found[""]
    # Japanese mixes Kana with Han.
    if found["Kana"]:
        return "Japanese"
    return max(found, key=found.__getitem__) if +found else _NONE


@lru_cache(10_000)
def _script_of(letter: str) -> str:
    if not letter.isalpha():
        return ""
    first = unicodedata.name(letter, "").partition(" ")[0]
    return _NAMES.get(first, first.capitalize())
