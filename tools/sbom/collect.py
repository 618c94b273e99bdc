"""Print the installed packages of this machine as JSON: those of Python, and Debian's.

`tools.sbom` runs this file in the image too, so it imports only what the image contains.
"""

from __future__ import annotations

import json
import subprocess
from importlib import metadata
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = "amazon-reviews"
_FORMAT = "${Package}\t${Version}\t${Architecture}\n"


def python_packages() -> dict[str, dict[str, Any]]:
    """Return the distributions by name; `needed`: amazon-reviews and all that it requires."""
    installed: dict[str, metadata.Distribution] = {}
    for found in metadata.distributions():
        # The first one on the path is the one that an import uses.
        installed.setdefault(canonicalize_name(found.metadata["Name"]), found)
    packages: dict[str, dict[str, Any]] = {
        name: {
            "version": found.version,
            "license": _license(found.metadata),
            "requires": set(),
            "needed": False,
        }
        for name, found in installed.items()
    }
    # An extra of a package, such as google-api-core[grpc], has requirements of its own.
    seen: set[tuple[str, str]] = set()
    waiting = [(ROOT, "")]
    while waiting:
        name, extra = waiting.pop()
        if name not in installed or (name, extra) in seen:
            continue
        seen.add((name, extra))
        packages[name]["needed"] = True
        for line in installed[name].requires or ():
            required = Requirement(line)
            if required.marker and not required.marker.evaluate({"extra": extra}):
                continue
            target = canonicalize_name(required.name)
            waiting += [(target, each) for each in ("", *required.extras)]
            if target in installed and target != name:
                packages[name]["requires"].add(target)
    return {name: {**each, "requires": sorted(each["requires"])} for name, each in packages.items()}


def debian_packages() -> list[list[str]]:
    """Return name, version and architecture of each package; none on another distribution."""
    command = ["dpkg-query", "--show", f"--showformat={_FORMAT}"]
    try:
        listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return []
    return [line.split("\t") for line in listed.splitlines()]


def _license(given: Any) -> str:
    """Return an SPDX expression or a short name; empty if the metadata has neither."""
    expression = given.get("License-Expression") or given.get("License") or ""
    if expression and "\n" not in expression and len(expression) < 80:
        return str(expression)
    classifiers = [
        line.split(" :: ")[-1]
        for line in given.get_all("Classifier") or ()
        if line.startswith("License ::")
    ]
    return classifiers[0] if len(classifiers) == 1 else ""


if __name__ == "__main__":
    print(json.dumps({"python": python_packages(), "debian": debian_packages()}))
