"""A fingerprint of the code of each component, which becomes a part of its cache key.

TFX's cache compares only inputs and execution properties. After a change of code it would reuse the
outputs of the old code. The imports in the sources determine the code of a component, so no list
has to be maintained.
"""

from __future__ import annotations

import ast
import hashlib
import re
import subprocess
from collections.abc import Iterable
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from core.code_file import CodeFile

if TYPE_CHECKING:
    from tfx.dsl.components.base.base_component import BaseComponent

_ROOT = Path(__file__).parents[1]
PACKAGES = (
    "cli",
    "components",
    "core",
    "examples",
    "pipeline",
    "platforms",
    "preprocessing",
    "sample_data",
    "serving",
    "trainer_module",
)
_DOTTED_NAME = re.compile(rf"\b(?:{'|'.join(PACKAGES)})(?:\.\w+)+")
_LIBRARIES = (
    "apache-beam",
    "numba",
    "tensorflow",
    "tensorflow-data-validation",
    "tensorflow-model-analysis",
    "tensorflow-transform",
    "tf_keras",
    "tfx",
)
"""The libraries whose upgrade may change the output of any component."""


def git(*words: str) -> str:
    """Return the output of git in this checkout; empty if there is no git or no checkout.

    Args:
      *words: the arguments of git, such as `rev-parse` and `HEAD`.
    """
    command = ["git", f"--git-dir={_ROOT / '.git'}", *words]
    try:
        return subprocess.run(command, cwd=_ROOT, capture_output=True, text=True).stdout.strip()
    except OSError:
        return ""


def roots(component: BaseComponent) -> list[str]:
    """Return our modules that TFX imports for a component, as sorted dotted names.

    These are the modules of the component, of its executor, and of the functions whose dotted names
    are in the execution properties, such as `run_fn`.
    """
    found = [type(component).__module__, component.executor_spec.executor_class.__module__]
    for value in component.spec.exec_properties.values():
        found += _DOTTED_NAME.findall(value) if isinstance(value, str) else ()
    return sorted({name for name in found if _files(name)})


def code_fingerprint(modules: Iterable[str], file: CodeFile | None = None) -> str:
    """Return a hash of modules, of our modules that they import, and of the libraries' versions.

    Args:
      modules: dotted names of modules, or of functions in modules.
      file: a file of a user's project, which is hashed too, with our modules that it imports.
    """
    text = file.text.encode() if file else b""
    return _digest(sources([*modules, *_names(text)]), text)


def all_code() -> str:
    """Return a hash of all files of our packages, and of the libraries' versions.

    The function does not parse the sources, and takes a quarter of a second.
    """
    files = (file for name in PACKAGES for file in (_ROOT / name).rglob("*") if file.is_file())
    return _digest(sorted(file for file in files if file.parent.name != "__pycache__"))


def _digest(files: Iterable[Path], more: bytes = b"") -> str:
    digest = hashlib.sha256(more)
    for path in files:
        digest.update(f"{path.relative_to(_ROOT)}\0".encode() + path.read_bytes() + b"\0")
    for library in _LIBRARIES:
        digest.update(f"{library} {metadata.version(library)}\0".encode())
    return digest.hexdigest()[:16]


def sources(modules: Iterable[str]) -> list[Path]:
    """Return the sorted files of modules and of all our modules that they import.

    The files in a folder `templates` next to a module belong to the module.

    Args:
      modules: dotted names of modules, or of functions in modules.
    """
    found: set[Path] = set()
    waiting = [path for module in modules for path in _files(module)]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            source = path.read_bytes()
            waiting += (file for name in _names(source) for file in _files(name))
            if b"import_module" in source:
                # The argument of import_module is known only when it is called.
                waiting += path.parent.glob("*.py")
    folders = {path.parent for path in found}
    return sorted(found.union(*(folder.glob("templates/*") for folder in folders)))


def _files(name: str) -> list[Path]:
    """Return the files that the import of a dotted name executes; none for another package.

    Parts of the name after a module, such as a function, are ignored.
    """
    found: list[Path] = []
    parts = name.split(".")
    for count in range(1, len(parts) + 1 if parts[0] in PACKAGES else 1):
        path = _ROOT.joinpath(*parts[:count])
        if not (path / "__init__.py").is_file():
            module = path.with_name(f"{path.name}.py")
            return [*found, module] if module.is_file() else found
        found.append(path / "__init__.py")
    return found


@lru_cache(maxsize=1024)
def _names(source: bytes) -> frozenset[str]:
    """Return the dotted names in the absolute imports and in the strings of a source."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and _DOTTED_NAME.fullmatch(str(node.value)):
            found.add(str(node.value))
    return frozenset(found)
