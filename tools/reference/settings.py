"""The page of the settings, from `PipelineConfig`."""

from __future__ import annotations

import json
import types
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import annotated_types
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from tools.reference.declared import NOTICE, about, cell, docstrings, is_section

_ROOT = "/ROOT"

_SETTINGS = """\
# Settings

One YAML file describes one experiment. Every command takes it as `--config FILE`. The environment
variable `PIPELINE_CONFIG` does the same for every command and for the TFX command line. A bare name
selects a preset, a file in `pipeline/presets/`: {presets}. The default is `sample`.

`--set KEY=VALUE` overrides a single key and may be repeated. `PIPELINE_SET` overrides several keys:
`PIPELINE_SET='training.epochs=3,data.max_examples={{train: 100000}}'`.

- Values are YAML. A comma inside brackets or quotes belongs to the value.
- If one key is overridden twice, the later value counts. `--set` has priority over `PIPELINE_SET`.
- Relative paths are relative to the working directory of the command.

An error in the settings is one line on stderr and exit code 2, before any component starts. These
are errors: an unknown key, a key that the file contains twice, an unmatched quote or
bracket, a wrong type, a missing file, a contradiction between keys.

In the column *default*, `null` means that the key is not set, and `ROOT` is `paths.root`.

Other pages have more about [labels](data.md#labels), [splits](data.md#splits),
[strategies](../how-to/choose-a-strategy.md),
[the learning rate](../explanation/training.md#learning-rate),
[the model in production](../explanation/components.md#blessing),
[Kubeflow](../how-to/kubeflow.md) and [Vertex AI](../how-to/vertex.md).
"""


def settings_page() -> str:
    """Return the page of all settings."""
    from pipeline.config import PRESETS, PipelineConfig

    presets = ", ".join(f"`{file.stem}`" for file in sorted(PRESETS.glob("*.yaml")))
    config = PipelineConfig.model_validate({"paths": {"root": _ROOT}})
    own = [name for name in PipelineConfig.model_fields if not is_section(PipelineConfig, name)]
    parts = [NOTICE + _SETTINGS.format(presets=presets), "## The pipeline\n", _table_head()]
    parts[-1] += "".join(_rows(PipelineConfig, config, "", own))
    for name in PipelineConfig.model_fields:
        if name not in own:
            section = getattr(config, name)
            title = f"## `{name}`\n\n{about(type(section))}\n"
            rows = _rows(type(section), section, f"{name}.", list(type(section).model_fields))
            parts += [title, _table_head() + "".join(rows)]
    return "\n".join(parts)


def _table_head() -> str:
    return "| key | type | default | meaning |\n|---|---|---|---|\n"


def _rows(
    section: type[BaseModel], values: BaseModel | None, prefix: str, names: list[str]
) -> Iterator[str]:
    """Yield a row of the table for each key; sections inside of a section are flattened."""
    texts = docstrings(section)
    for name in names:
        field = section.model_fields[name]
        key = prefix + name
        if values is not None and isinstance(value := getattr(values, name), BaseModel):
            yield from _rows(type(value), value, f"{key}.", list(type(value).model_fields))
            continue
        default = "required" if field.is_required() else _default(section, values, name)
        yield f"| `{key}` | {_type(field)} | {default} | {cell(texts[name])} |\n"
        for inner, marker in _element_sections(field.annotation):
            yield from _rows(inner, None, f"{key}{marker}.", list(inner.model_fields))


def _default(section: type[BaseModel], values: BaseModel | None, name: str) -> str:
    value = section.model_fields[name].default if values is None else getattr(values, name)
    if isinstance(value, str):
        if value.startswith("["):  # Without quotes it would be a list.
            return f"`{json.dumps(value)}`"
        return "`runs`" if value == _ROOT else f"`{value.replace(_ROOT, 'ROOT')}`"
    return f"`{json.dumps(value)}`"


def _element_sections(annotation: Any) -> Iterator[tuple[type[BaseModel], str]]:
    """Yield the sections that are elements of a mapping or a list, or may be None, with a marker
    for the key."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        found = [(item, "") for item in arguments]
    elif origin is dict:
        found = [(arguments[1], ".COMPONENT")]
    elif origin is list:
        found = [(arguments[0], "[]")]
    else:
        return
    for item, marker in found:
        if isinstance(item, type) and issubclass(item, BaseModel):
            yield item, marker


def _type(field: FieldInfo) -> str:
    return _type_name(field.annotation, field.metadata)


def _type_name(annotation: Any, constraints: Any = ()) -> str:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        extra = [getattr(item, "metadata", [item]) for item in arguments[1:]]
        return _type_name(arguments[0], [one for some in extra for one in some])
    if origin is Literal:
        return ", ".join(f"`{item}`" for item in arguments)
    if origin in (Union, types.UnionType):
        return " or ".join(_type_name(item, constraints) for item in arguments)
    if origin is dict:
        return f"mapping to {_type_name(arguments[1])}"
    if origin is list:
        return f"list of {_type_name(arguments[0])}"
    if origin is tuple:
        return f"list of {len(arguments)} times {_type_name(arguments[0])}"
    if annotation is type(None):
        return "`null`"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "mapping"
    names = {bool: "boolean", int: "integer", float: "number", str: "string"}
    return names[annotation] + _bounds(constraints)


def _bounds(constraints: Any) -> str:
    words = ""
    for item in constraints:
        if isinstance(item, annotated_types.Ge):
            words += f" ≥ {item.ge:g}"
        elif isinstance(item, annotated_types.Gt):
            words += f" > {item.gt:g}"
        elif isinstance(item, annotated_types.Le):
            words += f", ≤ {item.le:.10g}"
        elif isinstance(item, annotated_types.Lt):
            words += f", < {item.lt:g}"
    return words
