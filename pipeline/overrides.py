"""Cuts `KEY=VALUE,KEY=VALUE` at the commas between overrides.

A comma inside brackets or quotes belongs to a value. As in YAML, a quote opens a string only where
a value begins; elsewhere it is a character like any other.
"""

from __future__ import annotations

import re

_STRINGS = {"'": re.compile(r"'(?:[^']|'')*'"), '"': re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)}


def split_overrides(text: str) -> list[str]:
    """Split `text` into its overrides; blank ones are left out.

    Raises:
      ValueError: a quote or a closing bracket has no partner. An opening bracket without one takes
        the rest of `text`, which is no YAML value then.
    """
    parts: list[str] = []
    start = index = depth = 0
    value_begins = False
    stray: set[str] = set()
    while index < len(text):
        character = text[index]
        if character == "," and not depth:
            parts.append(_checked(text[start:index], stray))
            start, value_begins = index + 1, False
        elif character in _STRINGS and value_begins:
            string = _STRINGS[character].match(text, index)
            if string is None:
                raise _unpaired(character, text[start:])
            index, value_begins = string.end() - 1, False
        elif character in _STRINGS:
            stray ^= {character}
        elif character in "]}":
            depth -= 1
            if depth < 0:
                raise _unpaired(character, text[start : index + 1])
            value_begins = False
        elif character in "[{":
            depth += 1
            value_begins = True
        elif character in ",:" or (character == "=" and "=" not in text[start:index]):
            value_begins = True
        elif not character.isspace():
            value_begins = False
        index += 1
    parts.append(_checked(text[start:], stray))
    return [part for part in parts if part.strip()]


def _checked(override: str, stray: set[str]) -> str:
    if stray:
        raise _unpaired(min(stray), override)
    return override


def _unpaired(character: str, override: str) -> ValueError:
    key, _, value = override.partition("=")
    return ValueError(
        f"{key.strip()}: {value.strip()} has a {character} without a partner; "
        'put the whole value into quotes, as in name="it\'s"'
    )
