"""Compile the modules that the commands of this repository import to bytecode, on all cores.

    .venv/bin/python tools/bytecode.py

The modules are found in the compiled code, without executing it: from the packages of this
repository, every import at the top of a module leads to further modules. These are less than half
of the 400 MB of sources in .venv. Python compiles any other module when it is first imported.
"""

from __future__ import annotations

import concurrent.futures
import dis
import importlib.metadata
import os
import site
import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import SourceFileLoader
from importlib.util import resolve_name
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
_CHUNK = 16
"""Modules that a process gets at once."""


class Module(NamedTuple):
    """The full name of a module, and its source file."""

    name: str
    path: str

    @property
    def package(self) -> str:
        """The package from which its relative imports start."""
        if os.path.basename(self.path) == "__init__.py":
            return self.name
        return self.name.rpartition(".")[0]


def compile_all(folders: Sequence[Path], places: Sequence[str]) -> int:
    """Compile the modules of packages, and all modules that they import.

    Args:
      folders: the folders of the packages.
      places: the folders in which imported packages are.

    Returns:
      The number of modules.
    """
    frontier = [module for folder in folders for module in _modules(folder)]
    seen = {module.name for module in frontier}
    count = 0
    with concurrent.futures.ProcessPoolExecutor() as pool:
        while frontier:
            count += len(frontier)
            found: list[Module] = []
            for names in pool.map(compile_one, frontier, chunksize=_CHUNK):
                for name in names:
                    found += _new_modules(name, seen, places)
            frontier = found
    return count


def _modules(folder: Path) -> Iterator[Module]:
    for file in sorted(folder.rglob("*.py")):
        parts = file.relative_to(folder.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        yield Module(name, str(file))


def _new_modules(name: str, seen: set[str], places: Sequence[str]) -> Iterator[Module]:
    """Yield a module and its packages, if they exist and are not in `seen`; add them to it."""
    parts = name.split(".")
    for count in range(1, len(parts) + 1):
        each = ".".join(parts[:count])
        if each in seen:
            continue
        seen.add(each)
        relative = os.path.join(*parts[:count])
        for place in places:
            for path in (f"{relative}/__init__.py", f"{relative}.py"):
                if os.path.isfile(os.path.join(place, path)):
                    yield Module(each, os.path.join(place, path))
                    break


def compile_one(module: Module) -> set[str]:
    """Compile a module, unless its bytecode is up to date; return the names that it imports."""
    # The environment may forbid bytecode, to which an installation is an exception.
    sys.dont_write_bytecode = False
    try:
        code = SourceFileLoader(module.name, module.path).get_code(module.name)
    except (SyntaxError, ValueError, OSError):
        return set()  # Packages contain templates, and code for other versions of Python.
    return set(imported_names(code, module.package)) if code else set()


def imported_names(code: CodeType, package: str) -> Iterator[str]:
    """Yield the names that a module may import outside its functions; some are not modules.

    Args:
      code: the code of the module.
      package: the package from which its relative imports start.
    """
    for level, name, members in _import_statements(code):
        try:
            base = resolve_name("." * level + name, package)
        except ImportError:
            continue
        yield base
        for member in members or ():
            yield f"{base}.{member}"


def _import_statements(code: CodeType) -> Iterator[tuple[Any, str, Any]]:
    """Yield (level, name, members) of each import, the operands of IMPORT_NAME.

    The level is an int, and the members are a tuple of names or None.
    """
    # `dis.get_instructions` takes longer than the compilation.
    load, extend, imports = (
        dis.opmap[name] for name in ("LOAD_CONST", "EXTENDED_ARG", "IMPORT_NAME")
    )
    level: Any = None
    members: Any = None
    extended = 0
    bytecode = code.co_code
    for operation, argument in zip(bytecode[::2], bytecode[1::2], strict=True):
        index = extended | argument
        extended = index << 8 if operation == extend else 0
        if operation == load:
            level, members = members, code.co_consts[index]
        elif operation == imports:
            yield level, code.co_names[index], members


def main() -> None:
    packages = importlib.metadata.distribution("amazon-reviews").read_text("top_level.txt") or ""
    folders = [ROOT / name for name in packages.split()]
    count = compile_all(folders, [str(ROOT), *site.getsitepackages()])
    print(f"Compiled {count} modules to bytecode")


if __name__ == "__main__":
    main()
