"""A YAML loader that refuses repeated keys. PyYAML's own loader silently keeps the last value."""

from __future__ import annotations

from typing import Any

import yaml


def load_yaml(text: str) -> Any:
    """Load the values of one YAML document.

    Raises:
      yaml.YAMLError: `text` is not YAML, or a mapping at any level has the same key twice.
    """
    try:
        return yaml.load(text, _StrictLoader)
    except RecursionError:
        raise yaml.YAMLError("nested too deeply") from None


class _StrictLoader(yaml.SafeLoader):
    """SafeLoader that refuses a repeated key.

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
