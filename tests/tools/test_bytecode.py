"""The modules that tools/bytecode.py compiles."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools import bytecode

FILES = {
    "ours/app/__init__.py": "",
    "ours/app/main.py": """
import absolute.inner as alias
from . import sibling
from library import member, function_of_library
try:
    import missing
except ImportError:
    import fallback
def later():
    import optional
""",
    "ours/app/sibling.py": "from namespace.part.leaf import value",
    "site/absolute/__init__.py": "",
    "site/absolute/inner.py": "from .deep import *",
    "site/absolute/deep.py": "",
    "site/library/__init__.py": "",
    "site/library/member.py": "import app.main",
    "site/library/unused.py": "",
    "site/namespace/part/leaf.py": "value = 1",
    "site/fallback.py": "this is no Python",
    "site/optional.py": "",
}
COMPILED = {
    *("app/__init__", "app/main", "app/sibling"),
    *("absolute/__init__", "absolute/inner", "absolute/deep"),
    *("library/__init__", "library/member", "namespace/part/leaf"),
}


@pytest.fixture
def tree(tmp_path):
    for name, content in FILES.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    return tmp_path


def compiled(tree: Path) -> set[str]:
    return {
        str(file.relative_to(base).with_suffix(""))
        for base in (tree / "ours", tree / "site")
        for file in base.rglob("*.py")
        if os.path.exists(importlib.util.cache_from_source(str(file)))
    }


def test_what_our_modules_import_is_compiled(tree, monkeypatch):
    # It does not apply to an installation.
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    run = (
        "from pathlib import Path\nfrom tools import bytecode\n"
        f"folders, places = [Path({str(tree / 'ours/app')!r})], [{str(tree / 'site')!r}]\n"
        "print(bytecode.compile_all(folders, places))"
    )
    command = [sys.executable, "-c", run]
    done = subprocess.run(
        command, cwd=bytecode.ROOT, check=True, capture_output=True, text=True, timeout=60
    )
    assert compiled(tree) == COMPILED
    # It cannot compile one of them.
    assert int(done.stdout) == len(COMPILED) + 1


def test_imports_with_many_constants_are_found():
    # Operands above 255 have a prefix.
    lines = [f"x{n} = {n}.5" for n in range(700)] + ["from a.b import c, d", "from .e import f"]
    code = compile("\n".join(lines), "module.py", "exec")
    assert set(bytecode.imported_names(code, "package")) == {
        *("a.b", "a.b.c", "a.b.d"),
        *("package.e", "package.e.f"),
    }


def test_a_relative_import_beyond_the_top_is_ignored():
    code = compile("from ... import far", "module.py", "exec")
    assert set(bytecode.imported_names(code, "package")) == set()
