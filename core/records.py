"""Dataclasses whose values a file stores as a JSON object, of this or of another version."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any


def known_fields(kind: type[Any], stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a JSON object whose keys are fields of a dataclass.

    Another version may have stored further keys, and may lack some.

    Args:
      kind: the dataclass.
      stored: the JSON object.
    """
    return {each.name: stored[each.name] for each in fields(kind) if each.name in stored}
