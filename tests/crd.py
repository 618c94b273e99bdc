"""The validation of a manifest by a CustomResourceDefinition, as an API server does it."""

import re

import yaml

_KINDS = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
}


def problems(manifest, crd_file):
    """Return the errors that the server would report, and the fields that it would drop."""
    crd = yaml.load(crd_file.read_text(), yaml.CSafeLoader)["spec"]
    served = {f"{crd['group']}/{each['name']}": each["schema"] for each in crd["versions"]}
    if manifest["kind"] != crd["names"]["kind"] or manifest["apiVersion"] not in served:
        return [f"{manifest['apiVersion']} {manifest['kind']} is unknown"]
    schema = served[manifest["apiVersion"]]["openAPIV3Schema"]
    # A CRD may leave out these fields, which the server validates itself.
    own = ("apiVersion", "kind", "metadata")
    body = {name: value for name, value in manifest.items() if name not in own}
    return list(_problems(body, schema, manifest["kind"]))


def _problems(value, schema, where):
    if schema.get("x-kubernetes-int-or-string"):
        if not isinstance(value, int | str):
            yield f"{where}: neither a number nor text"
        elif isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
            yield f"{where}: {value} does not fit {schema['pattern']}"
    elif "type" not in schema:
        if not schema.get("x-kubernetes-preserve-unknown-fields"):
            yield f"{where}: the schema has no type"
    elif not isinstance(value, _KINDS[schema["type"]]):
        yield f"{where}: {value!r} is no {schema['type']}"
    elif value not in schema.get("enum", [value]):
        yield f"{where}: {value!r} is none of {', '.join(schema['enum'])}"
    elif isinstance(value, dict):
        for name in schema.get("required", []):
            if name not in value:
                yield f"{where}.{name} is missing"
        known, others = schema.get("properties", {}), schema.get("additionalProperties")
        for name, item in value.items():
            if name in known or others:
                yield from _problems(item, known.get(name) or others, f"{where}.{name}")
            else:
                yield f"{where}.{name} is unknown"
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _problems(item, schema["items"], f"{where}[{number}]")
