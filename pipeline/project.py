"""The code in a user's project: models and components, which are found by their files."""

from __future__ import annotations

import difflib
import keyword
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from core.code_file import CodeFile, read
from core.errors import ConfigError
from core.storage import absolute, expand_home, is_url
from pipeline.nodes import NODES
from trainer_module.settings import MODELS

MODEL_FOLDER, COMPONENT_FOLDER = "models", "components"
_TAKEN: dict[str, tuple[str, ...]] = {MODEL_FOLDER: MODELS, COMPONENT_FOLDER: NODES}


def resolve_paths(values: dict[str, Any], file: Path, keys: Iterable[str]) -> None:
    """Make the relative paths in a settings file absolute if the file belongs to a project.

    Args:
      values: the values of the file, which are changed. `project` is relative to the folder of the
        file, and the other paths are relative to the project.
      file: the settings file.
      keys: the dotted keys of all paths in the settings.
    """
    project = values.get("project")
    if not isinstance(project, str) or not project:
        return
    folder = os.path.join(file.absolute().parent, expand_home(project))
    values["project"] = folder = os.path.normpath(folder)
    for key in keys:
        section, _, name = key.rpartition(".")
        inner = _values_of(values, section)
        path = inner.get(name)
        if isinstance(path, str) and path and not is_url(path) and _is_valid(path):
            inner[name] = os.path.join(folder, expand_home(path))


def _values_of(values: dict[str, Any], section: str) -> dict[str, Any]:
    """Return the values of a section of nested settings; empty if they have no such section."""
    found: Any = values
    for name in filter(None, section.split(".")):
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def _is_valid(path: str) -> bool:
    """Return whether a path is valid. A wrong one, such as `gs:/bucket`, is no folder of a project.

    The settings report it later.
    """
    try:
        absolute(path)
    except ValueError:
        return False
    return True


def find_model(project: str | None, name: str) -> CodeFile | None:
    """Return the file of a model of a project; None if it is a model of the package.

    Args:
      project: the folder of the project; None: there is none.
      name: the value of `training.model`.

    Raises:
      ConfigError: there is no such model, its file cannot be read, or the name of a file is not
        allowed.
    """
    # A file with the name of a model of the package is an error, also for that model.
    files = _files(project, MODEL_FOLDER)
    if name in MODELS:
        return None
    if project and name in files:
        return read(files[name], "model", Path(project))
    close = difflib.get_close_matches(name, [*MODELS, *files], n=1, cutoff=0.7)
    clause = f", did you mean {close[0]}?" if close else "."
    if project:
        own = f"those of the files in {Path(project, MODEL_FOLDER)}: {', '.join(files) or 'none'}"
    else:
        own = "those of a project, which `amazon-reviews init FOLDER` creates"
    raise ConfigError(
        f"training.model: unknown model {name!r}{clause} Known are {', '.join(MODELS)}, and {own}"
    )


def check_project(project: str | None, model: str, resources: Iterable[str]) -> None:
    """Check that a project, the model and the components of the settings exist.

    Args:
      project: the folder of the project; None: there is none.
      model: the value of `training.model`.
      resources: the components in `cluster.resources`.

    Raises:
      ConfigError: there is no such folder, model or component, a file cannot be read, or the name
        of a file is not allowed.
    """
    if project is not None and not os.path.isdir(project):
        raise ConfigError(
            f"project: no folder {project}; set the folder of the project, or create one with "
            "`amazon-reviews init FOLDER`"
        )
    find_model(project, model)
    component_files(project)
    known = [*NODES, *component_names(project)]
    for name in resources:
        if name not in known:
            raise ConfigError(
                f"cluster.resources: unknown component {name}; known are {', '.join(known)}"
            )


def component_files(project: str | None) -> list[CodeFile]:
    """Return the files of a project's components, in the order of their names.

    Args:
      project: the folder of the project; None: there is none.

    Raises:
      ConfigError: a file cannot be read, or its name is not allowed.
    """
    files = _files(project, COMPONENT_FOLDER).values()
    return [read(file, "component", Path(project or "")) for file in files]


def component_names(project: str | None) -> list[str]:
    """Return the names of a project's components, which are the ids of their nodes.

    Args:
      project: the folder of the project; None: there is none.

    Raises:
      ConfigError: the name of a file is not allowed.
    """
    return list(_files(project, COMPONENT_FOLDER))


def _files(project: str | None, folder: str) -> dict[str, Path]:
    """Return name -> file for the Python files in a folder of a project, in their order.

    Files whose names begin with an underscore are left out.

    Raises:
      ConfigError: the name of a file is not a Python name, or is taken by the package.
    """
    if project is None:
        return {}
    found = {
        file.stem: file
        for file in sorted(Path(project, folder).glob("*.py"))
        if not file.name.startswith("_")
    }
    for name, file in found.items():
        if not name.isidentifier() or keyword.iskeyword(name):
            raise ConfigError(
                f"{file}: {name!r} is not a name in Python; rename the file, for example to "
                "my_model.py"
            )
        if name in _TAKEN[folder]:
            raise ConfigError(f"{file}: the package has a {name} already; rename the file")
    return found
