"""The settings file and the overrides, read into one mapping; what they mean is for `config`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import yaml

from pipeline.overrides import split_overrides
from preprocessing.strict_yaml import load_yaml

PRESETS = Path(__file__).parent / "presets"
CONFIG_VARIABLE = "PIPELINE_CONFIG"
OVERRIDES_VARIABLE = "PIPELINE_SET"


class ConfigError(ValueError):
    """A setting is wrong; the message is one line that names the key and what would be right."""

    def __init__(self, message: str):
        # Parts of it were typed by somebody, line breaks included.
        super().__init__(" ".join(message.split()))


def read_settings(source: str, overrides: str) -> tuple[Path, dict[str, Any]]:
    """The file that `source` names, and its values with the overrides applied.

    Args:
      source: path of a YAML file, or the bare name of a preset.
      overrides: see `parse_overrides`.

    Raises:
      ConfigError: the file is missing or holds no YAML mapping, or an override is malformed.
    """
    file = _locate(source)
    values = _read_yaml(file)
    for key, value in parse_overrides(overrides):
        _set_key(values, key, value)
    return file, values


def parse_overrides(text: str) -> list[tuple[str, Any]]:
    """`'a.b=1,c={x: 2, y: 3}'` -> [('a.b', 1), ('c', {'x': 2, 'y': 3})]; values are YAML.

    Raises:
      ConfigError: a part is not KEY=VALUE, a quote or a bracket in it has no partner, or its
        value is not YAML.
    """
    try:
        parts = split_overrides(text)
    except ValueError as error:
        raise ConfigError(f"{OVERRIDES_VARIABLE}: {error}") from None
    parsed = []
    for part in parts:
        key, equals, value = part.partition("=")
        if not equals or not key.strip():
            raise ConfigError(
                f"{OVERRIDES_VARIABLE}: {part.strip()!r} is not KEY=VALUE, "
                "write for example training.epochs=3,data.max_examples=100000"
            )
        try:
            parsed.append((key.strip(), load_yaml(value)))
        except yaml.YAMLError as error:
            raise ConfigError(
                f"{OVERRIDES_VARIABLE}: {key.strip()}: {value.strip()!r} is not a YAML value "
                f"({_first_line(error)})"
            ) from None
    return parsed


def _locate(source: str) -> Path:
    preset = PRESETS / f"{source}.yaml"
    if os.sep not in source and not source.endswith((".yaml", ".yml")) and preset.is_file():
        return preset
    file = Path(source).expanduser()
    if not file.is_file():
        names = ", ".join(sorted(preset.stem for preset in PRESETS.glob("*.yaml")))
        raise ConfigError(
            f"{CONFIG_VARIABLE}: no file {source!r}; name a YAML file or one of {names}"
        )
    return file


def _read_yaml(file: Path) -> dict[str, Any]:
    try:
        values = load_yaml(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: cannot be read: {error}") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" line {mark.line + 1}:" if mark else ""
        problem = getattr(error, "problem", None) or _first_line(error)
        raise ConfigError(f"{file}:{line} not valid YAML: {problem}") from None
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise ConfigError(f"{file}: holds a {type(values).__name__}, settings are a mapping")
    return values


def _set_key(values: dict[str, Any], key: str, value: Any) -> None:
    *sections, last = key.split(".")
    for section in sections:
        inner = values.setdefault(section, {})
        if not isinstance(inner, dict):
            raise ConfigError(f"{OVERRIDES_VARIABLE}: {key}: {section} is not a section")
        values = inner
    values[last] = value


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]
