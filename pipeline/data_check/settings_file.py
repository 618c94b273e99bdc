"""Write the settings with which a run would start, as YAML."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from core.overrides import dump_yaml, load_yaml
from core.settings import Section
from pipeline.config import Paths, PipelineConfig, load_config
from pipeline.data_check.found import Problem

HEAD = "# Written by `amazon-reviews data check`. docs/reference/settings.md has all keys."


def data_yaml(changes: Mapping[str, Any]) -> str:
    """Return changes of the section `data` as YAML, in their order.

    Args:
      changes: key in `data` -> its value.
    """
    return dump_yaml({"data": dict(changes)})


def with_data(config: PipelineConfig, base: str, changes: Mapping[str, Any]) -> PipelineConfig:
    """Return settings with changes in the section `data`.

    Args:
      config: the settings.
      base: the folder of the files.
      changes: key in `data` -> its value. The columns are added to those of `config`.

    Raises:
      pydantic.ValidationError: a change is not allowed.
    """
    values = config.model_dump()
    data = {**values["data"], **changes, "input_base": base}
    data["columns"] = {**values["data"]["columns"], **changes.get("columns", {})}
    return PipelineConfig.model_validate({**values, "data": data})


def with_sections(
    config: PipelineConfig, sections: Mapping[str, Mapping[str, Any]]
) -> PipelineConfig:
    """Return settings with changes in some sections.

    Args:
      config: the settings.
      sections: name of a section -> its changed keys with their values.

    Raises:
      pydantic.ValidationError: a change is not allowed.
    """
    values = config.model_dump()
    for name, changes in sections.items():
        values[name] = {**values[name], **changes}
    return PipelineConfig.model_validate(values)


def settings_file(config: PipelineConfig, is_own: bool, problems: Sequence[Problem]) -> str:
    """Return the content of a settings file.

    Args:
      config: the settings.
      is_own: whether the settings come from a file of the user. If not, those of the preset
        `sample`, which are chosen for its reviews, are left out.
      problems: the problems, whose other answers become comments.
    """
    defaults = PipelineConfig()
    values = changed_values(config, defaults)
    if not is_own:
        sample = changed_values(load_config("sample", environ={}), defaults)
        values = {key: value for key, value in values.items() if value != sample.get(key)}
    paths = values.pop("paths", {})
    derived = Paths.model_validate({"root": config.paths.root}).model_dump()
    kept = {key: value for key, value in paths.items() if key == "root" or value != derived[key]}
    if config.project:
        # The default is relative to the working directory, and the new file is used from others.
        kept["root"] = config.paths.root
    if kept:
        values["paths"] = kept
    data = {"data": values.pop("data", {})}
    lines = [HEAD, dump_yaml({**data, **values}).rstrip()]
    for problem in problems:
        for choice in problem.choices[1:]:
            lines.append(f"# or: --set {as_argument(choice.settings)}  # {choice.meaning}")
    return "\n".join(lines) + "\n"


def changed_values(section: Section, default: Section) -> dict[str, Any]:
    """Return the values that differ from the defaults, nested as in YAML.

    Args:
      section: the settings, or one of their sections.
      default: the same section with its defaults.
    """
    found: dict[str, Any] = {}
    for name in type(section).model_fields:
        value, usual = getattr(section, name), getattr(default, name)
        if value == usual:
            continue
        if isinstance(value, Section):
            found[name] = changed_values(value, usual)
        else:
            found[name] = value
    return found


def as_options(settings: str) -> str:
    """Return the options for a shell, such as `--set 'training={epochs: 5, seed: 7}'`.

    Args:
      settings: lines of YAML with one or several sections.
    """
    sections = load_yaml(settings)
    return " ".join(
        f"--set {as_argument(dump_yaml({name: values}))}" for name, values in sections.items()
    )


def as_argument(settings: str) -> str:
    """Return the argument of `--set` for a shell, such as `data.labels=each`.

    Args:
      settings: lines of YAML with a single value.
    """
    value = load_yaml(settings)
    names: list[str] = []
    while isinstance(value, dict) and len(value) == 1 and names != ["data", "labels"]:
        [(name, value)] = value.items()
        names.append(str(name))
    text = dump_yaml(value, one_line=True).removesuffix("...\n").strip()
    return shlex.quote(f"{'.'.join(names)}={text}")
