"""Text to settings: YAML, and the overrides KEY=VALUE of `--set` and $PIPELINE_SET.

Several overrides are separated by commas. A comma inside brackets or quotes belongs to a value. As
in YAML, a quote opens a string only at the beginning of a value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import yaml

from core.errors import ConfigError

OPTION = "--set"
"""The command-line option that takes overrides."""

_STRINGS = {"'": re.compile(r"'(?:[^']|'')*'"), '"': re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)}


def parse_overrides(text: str, origin: str = OPTION) -> list[tuple[str, Any]]:
    """Return the keys and values in `text`: `'a.b=1,c={x: 2}'` -> [('a.b', 1), ('c', {'x': 2})].

    Args:
      text: the overrides; values are YAML.
      origin: the option or variable that holds `text`, for error messages.

    Raises:
      ConfigError: a part is not KEY=VALUE, a quote or a bracket in it has no partner, or its
        value is not YAML.
    """
    try:
        parts = _split(text)
    except ValueError as error:
        raise ConfigError(f"{origin}: {error}") from None
    parsed = []
    for part in parts:
        key, value = split_pair(part, origin, "training.epochs=3,data.max_examples=100000")
        try:
            parsed.append((key, load_yaml(value)))
        except yaml.YAMLError as error:
            raise ConfigError(
                f"{origin}: {key}: {value.strip()!r} is not a YAML value "
                f"({str(error).splitlines()[0]})"
            ) from None
    return parsed


def split_pair(text: str, origin: str, example: str) -> tuple[str, str]:
    """Return the key and the unparsed value of `text`.

    Args:
      text: KEY=VALUE.
      origin: the option or variable that holds `text`, for the error message.
      example: a correct pair, for the error message.

    Raises:
      ConfigError: `text` has no `=`, or no key before it.
    """
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ConfigError(
            f"{origin}: {text.strip()!r} is not KEY=VALUE, write for example {example}"
        )
    return key.strip(), value


def apply_overrides(values: dict[str, Any], texts: Iterable[str], origin: str = OPTION) -> None:
    """Set the keys of `texts` in `values`, whose sections are nested dictionaries.

    Raises:
      ConfigError: see `parse_overrides`; also if a part of a key is not a section.
    """
    for text in texts:
        for key, value in parse_overrides(text, origin):
            _set_key(values, key, value, origin)


def _set_key(values: dict[str, Any], key: str, value: Any, origin: str) -> None:
    *sections, last = key.split(".")
    for depth, section in enumerate(sections, 1):
        inner = values.setdefault(section, {})
        if not isinstance(inner, dict):
            raise ConfigError(f"{origin}: {key}: {'.'.join(sections[:depth])} is not a section")
        values = inner
    values[last] = value


def _split(text: str) -> list[str]:
    """Split `text` at the commas between overrides; leave out blank overrides.

    Raises:
      ValueError: a quote or a bracket has no partner. YAML would accept an opening bracket inside
        of a plain value, which would then contain all following overrides.
    """
    parts: list[str] = []
    opened: list[str] = []  # the brackets without a partner so far
    start = index = 0
    value_begins = False
    stray: set[str] = set()
    while index < len(text):
        character = text[index]
        if character == "," and not opened:
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
            if not opened:
                raise _unpaired(character, text[start : index + 1])
            opened.pop()
            value_begins = False
        elif character in "[{":
            opened.append(character)
            value_begins = True
        elif character in ",:" or (character == "=" and "=" not in text[start:index]):
            value_begins = True
        elif not character.isspace():
            value_begins = False
        index += 1
    if opened:
        raise _unpaired(opened[0], text[start:])
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


def load_yaml(text: str) -> Any:
    """Load the values of one YAML document; PyYAML itself keeps the last of two equal keys.

    Raises:
      yaml.YAMLError: `text` is not YAML, or a mapping at any level has the same key twice.
    """
    try:
        return yaml.load(text, _StrictLoader)
    except RecursionError:
        raise yaml.YAMLError("nested too deeply") from None


class _StrictLoader(yaml.SafeLoader):
    """SafeLoader that refuses a repeated key, and reads 1e-3 as a number, as YAML 1.2 and JSON do.

    It checks the nodes before PyYAML merges the mappings of `<<`. So a key may override a key that
    is merged.
    """

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        lines: dict[tuple[str, str], int] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            name, line = (key.tag, key.value), key.start_mark.line + 1
            if name in lines:
                raise yaml.MarkedYAMLError(
                    problem=f"the key {key.value!r} is in line {lines[name]} and again in line "
                    f"{line}; keep one of them",
                    problem_mark=key.start_mark,
                )
            lines[name] = line
        return node


_StrictLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+$"), list("-+0123456789")
)
