"""The settings file, read into a mapping; `pipeline.config` validates its values."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import yaml

from core.errors import ConfigError
from core.strict_yaml import load_yaml

PRESETS = Path(__file__).parent / "presets"
CONFIG_VARIABLE = "PIPELINE_CONFIG"
OVERRIDES_VARIABLE = "PIPELINE_SET"


def read_settings(source: str) -> tuple[Path, dict[str, Any]]:
    """Return the file that `source` names, and its values.

    Args:
      source: path of a YAML file, or the bare name of a preset.

    Raises:
      ConfigError: the file is missing, or it is not a YAML mapping.
    """
    file = _locate(source)
    return file, _read_yaml(file)


def _locate(source: str) -> Path:
    preset = PRESETS / f"{source}.yaml"
    if os.sep not in source and not source.endswith((".yaml", ".yml")) and preset.is_file():
        return preset
    file = Path(source).expanduser()
    if not file.is_file():
        names = ", ".join(sorted(preset.stem for preset in PRESETS.glob("*.yaml")))
        raise ConfigError(
            f"--config, {CONFIG_VARIABLE}: no file {source!r}; set a YAML file or one of {names}"
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
        raise ConfigError(
            f"{file}: contains a {type(values).__name__}; settings are a mapping of keys to values"
        )
    return values


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]
