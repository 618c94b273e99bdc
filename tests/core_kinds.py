"""The validation of objects of Kubernetes itself, by the models of its Python client."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from kubernetes.client import models

_PLAIN = {"str": str, "int": int, "bool": bool, "float": (int, float), "object": object}


def problems(manifest: dict[str, Any]) -> list[str]:
    """Return the unknown, missing and wrongly typed fields of an object such as a Deployment."""
    version, kind = manifest["apiVersion"].rpartition("/")[2], manifest["kind"]
    model = f"{version[0].upper()}{version[1:]}{kind}"
    if not hasattr(models, model):
        return [f"{manifest['apiVersion']} {kind} is unknown"]
    return list(_problems(manifest, model, kind))


def _problems(value: Any, expected: str, where: str) -> Iterator[str]:
    if of_list := re.fullmatch(r"list\[(.+)\]", expected):
        if not isinstance(value, list):
            yield f"{where}: {value!r} is no list"
            return
        for number, item in enumerate(value):
            yield from _problems(item, of_list[1], f"{where}[{number}]")
    elif of_dict := re.fullmatch(r"dict\(str, (.+)\)", expected):
        if not isinstance(value, dict):
            yield f"{where}: {value!r} is no mapping"
            return
        for name, item in value.items():
            yield from _problems(item, of_dict[1], f"{where}.{name}")
    elif expected in _PLAIN:
        if not isinstance(value, _PLAIN[expected]):
            yield f"{where}: {value!r} is no {expected}"
    elif isinstance(value, dict):
        yield from _of_model(value, getattr(models, expected), where)
    else:
        yield f"{where}: {value!r} is no {expected}"


def _of_model(value: dict[str, Any], model: Any, where: str) -> Iterator[str]:
    attributes = {field: name for name, field in model.attribute_map.items()}
    for field in value:
        if field not in attributes:
            yield f"{where}.{field} is unknown"
        else:
            kind = model.openapi_types[attributes[field]]
            yield from _problems(value[field], kind, f"{where}.{field}")
    try:
        # The setters of the model refuse a required field that is missing.
        model(**{attributes[field]: item for field, item in value.items() if field in attributes})
    except ValueError as error:
        yield f"{where}: {error}"
