"""The components of a user's project, as nodes of the pipeline."""

from __future__ import annotations

from collections.abc import Sequence

from tfx.dsl.components.base.base_component import BaseComponent

from core.code_file import CodeError, CodeFile, about, guarded, load
from pipeline.outputs import Outputs

_CREATE = "create"


def create_components(files: Sequence[CodeFile], outputs: Outputs) -> list[BaseComponent]:
    """Return the components of a project. The id of each one is the name of its file.

    Args:
      files: the files of the components. Each has a function `create`, from `Outputs` to a
        component.
      outputs: the outputs that the components can read.

    Raises:
      CodeError: a file has an error, or `create` returns no component.
    """
    found = []
    for file in files:
        component = guarded(file, load(file, [_CREATE]).create, outputs)
        if not isinstance(component, BaseComponent):
            kind = type(component).__name__
            raise CodeError(about(file, _CREATE, f"returns a {kind}, not a component of TFX"))
        found.append(component.with_id(file.name))
    return found
