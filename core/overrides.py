"""Text to settings: YAML, and the overrides KEY=VALUE of `--set` and $PIPELINE_SET.

Several overrides are separated by commas. A comma belongs to a value if no KEY= follows it, or if
the value up to the comma is not YAML, as within brackets and quotes.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator
from typing import Any

import yaml

from core.errors import ConfigError
from core.values import check_values

OPTION = "--set"
"""The command-line option that takes overrides."""

_TAGS = "tag:yaml.org,2002:"
"""The beginning of the tags that are written `!!`, such as `!!float`."""
_NULL, _MERGE = f"{_TAGS}null", f"{_TAGS}merge"
_SHOWN = 40
"""The maximum number of characters of a value in a message."""
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_NEXT_KEY = re.compile(r"""(?=,\s*[^\s,=\[\]{}'":]+\s*=)""")


def parse_overrides(text: str, origin: str = OPTION) -> list[tuple[str, Any]]:
    """Return the keys and values in `text`: `'a.b=1,c={x: 2}'` -> [('a.b', 1), ('c', {'x': 2})].

    Args:
      text: KEY=VALUE, or several of them separated by commas. The values are YAML, see `load_yaml`.
      origin: the option or variable that contains `text`, for error messages.

    Raises:
      ConfigError: `text` is empty, a part of it is not KEY=VALUE, or a value is not YAML.
    """
    check_values(text, origin)
    pairs: list[tuple[str, Any]] = []
    begun = problem = ""
    for part in _NEXT_KEY.split(text):
        begun = begun + part if begun else part.strip(", ")
        if not begun:
            continue
        key, value = split_pair(begun, origin, "training.epochs=3,data.max_examples=100000")
        try:
            pairs.append((key, _load_value(value)))
        except yaml.YAMLError as error:
            # The comma after this part may be within brackets or quotes.
            problem = (
                f"{key}: {value.strip()!r} is not a YAML value ({str(error).splitlines()[0]}); "
                "put a text with special characters into quotes"
            )
        else:
            begun = ""
    if begun:
        raise ConfigError(f"{origin}: {problem}")
    return pairs


def split_pair(text: str, origin: str, example: str) -> tuple[str, str]:
    """Return the key and the unparsed value of KEY=VALUE.

    Args:
      text: a single KEY=VALUE.
      origin: the option or variable that contains `text`, for the error message.
      example: a correct pair, for the error message.

    Raises:
      ConfigError: there is no `=`, or the key before it or a part of the key is empty.
    """
    key, equals, value = text.partition("=")
    if not equals or not all(part.strip() for part in key.split(".")):
        raise ConfigError(
            f"{origin}: {text.strip()!r} is not KEY=VALUE, write for example {example}"
        )
    return key.strip(), value


def apply_overrides(
    values: dict[str, Any],
    texts: Iterable[str],
    origin: str = OPTION,
    sections: Container[str] = (),
) -> None:
    """Set the values of overrides in nested settings.

    Args:
      values: the settings, which are changed. Each section is a dictionary; a missing section is
        added.
      texts: overrides, see `parse_overrides`. A later override takes precedence.
      origin: the option or variable that contains `texts`, for error messages.
      sections: the keys of sections. A mapping for one of them sets the keys in the mapping, and
        leaves the others as they are.

    Raises:
      ConfigError: see `parse_overrides`; also if a part of a key is not a section.
    """
    given = (pair for text in texts for pair in parse_overrides(text, origin))
    for key, value in (each for pair in given for each in _single(*pair, sections)):
        *names, last = key.split(".")
        section = values
        for name in names:
            section = section.setdefault(name, {})
            if not isinstance(section, dict):
                raise ConfigError(
                    f"{origin}: {key}: {name} is not a section, but {section!r}; correct or remove "
                    f"{name} in the settings"
                )
        section[last] = value


def _single(key: str, value: Any, sections: Container[str]) -> Iterator[tuple[str, Any]]:
    """Yield the key and the value of each setting in an override, which may be of a section."""
    if key in sections and isinstance(value, dict):
        for name, inner in value.items():
            yield from _single(f"{key}.{name}", inner, sections)
    else:
        yield key, value


def _load_value(text: str) -> Any:
    """Return the value in `text`; "" for none.

    YAML ignores what follows ` #`. In an override that would be a part of a name or a path, so it
    is an error.

    Raises:
      yaml.YAMLError: see `load_yaml`; also if a comment follows the value.
    """
    value = load_yaml(text, nothing="")
    node = yaml.compose(text, _StrictLoader)
    rest = text[node.end_mark.index if node else 0 :].strip()
    if rest.startswith("#"):
        raise yaml.YAMLError(f"YAML reads {rest!r} as a comment")
    return value


def load_yaml(text: str, nothing: Any = None) -> Any:
    """Return the values of one YAML document.

    PyYAML itself keeps the last of two equal keys, such as 1 and true, and reads a key without a
    value as None, like `null`. Here equal keys are an error, and a key without a value has the
    value "", which `core.values` refuses.

    Args:
      text: the document.
      nothing: the result for a document without content.

    Raises:
      yaml.YAMLError: `text` is not YAML, a mapping at any level has the same key twice, a value
        contains itself or does not fit its tag, or there are too many levels.
    """
    loader = _StrictLoader(text)
    try:
        node = loader.get_single_node()
        # The document of the line `---` alone is a node without a value.
        if node is None or (node.tag == _NULL and not node.value):
            return nothing
        # Unlike `construct_document`, this refuses a value that contains itself.
        return loader.construct_object(node, deep=True)
    except RecursionError:
        raise yaml.YAMLError("it has too many levels") from None
    finally:
        loader.dispose()


def dump_yaml(value: Any, *, one_line: bool = False) -> str:
    """Return the YAML that `load_yaml` reads as a value, whose keys keep their order.

    Args:
      value: the value.
      one_line: whether mappings and lists are in braces and brackets, in one line.
    """
    return str(
        yaml.dump(
            value,
            Dumper=_Dumper,
            default_flow_style=one_line,
            sort_keys=False,
            allow_unicode=True,
            width=10_000 if one_line else 100,
        )
    )


class _StrictLoader(yaml.SafeLoader):
    """SafeLoader that refuses a repeated key, and reads 1e-3 as a number, as YAML 1.2 and JSON do.

    It reads a date as text, and also what YAML 1.1 reads as a number of another base, such as 0010
    and 10:30.

    `load_yaml` describes how it reads a key without a value.

    It checks the nodes before PyYAML merges the mappings of `<<`. So a key may override a key that
    is merged.
    """

    def get_single_node(self) -> yaml.Node | None:
        """Return the node of the document; None for a document without content.

        Raises:
          yaml.MarkedYAMLError: the text is not YAML, or has an escape such as `"\\U00110000"`.
        """
        try:
            return super().get_single_node()
        except (ValueError, OverflowError):
            problem = "an escape is no character; write the character itself"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=self.get_mark()) from None

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """Return the node of a mapping.

        Raises:
          yaml.MarkedYAMLError: the mapping has two equal keys.
        """
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        seen: dict[Any, str] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag == _MERGE:
                continue
            # Equal values, such as 1, 1.0 and true, are one key of a dictionary.
            value, written = self.construct_object(key), str(key.value)
            if value in seen:
                problem = f"the key {written!r} is there twice; keep one of them"
                if seen[value] != written:
                    problem = (
                        f"the keys {seen[value]!r} and {written!r} are read as one; keep one of "
                        "them, or put one into quotation marks"
                    )
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
            seen[value] = written
        return node

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """Return the value of a node.

        Raises:
          yaml.MarkedYAMLError: the text of the node does not fit its tag, such as `!!float x`, or
            is a number of thousands of digits.
        """
        try:
            return super().construct_object(node, deep)
        except (ValueError, LookupError):  # PyYAML does not check the text.
            tag, text = node.tag.replace(_TAGS, "!!"), str(node.value)[:_SHOWN]
            problem = f"{text!r} is no value of the type {tag}"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark) from None

    def construct_null(self, node: yaml.ScalarNode) -> str | None:
        """Return None for `null` or `~`, and "" for a key without a value."""
        return None if node.value else ""

    def construct_date(self, node: yaml.ScalarNode) -> str:
        """Return a date as text. PyYAML raises a ValueError for one like 2026-02-30."""
        return str(node.value)

    def construct_integer(self, node: yaml.ScalarNode) -> int | str:
        """Return a number of decimal digits without leading zeros as an int, any other as text."""
        text = str(node.value)
        return int(text) if _INTEGER.fullmatch(text) else text

    def construct_decimal(self, node: yaml.ScalarNode) -> float | str:
        """Return a float. A time such as 1:30.5 is text."""
        return str(node.value) if ":" in node.value else self.construct_yaml_float(node)


_StrictLoader.add_constructor(_NULL, _StrictLoader.construct_null)
_StrictLoader.add_constructor(f"{_TAGS}timestamp", _StrictLoader.construct_date)
_StrictLoader.add_constructor(f"{_TAGS}int", _StrictLoader.construct_integer)
_StrictLoader.add_constructor(f"{_TAGS}float", _StrictLoader.construct_decimal)


class _Dumper(yaml.SafeDumper):
    """SafeDumper that quotes a text such as `1e3`, which `_StrictLoader` would read as a number."""


for _class in (_StrictLoader, _Dumper):
    _class.add_implicit_resolver(
        f"{_TAGS}float", re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+$"), list("-+0123456789")
    )
