"""The files that .dockerignore lets into the image, without building it."""

import re
from pathlib import Path

from pipeline.code_version import PACKAGES

ROOT = Path(__file__).parents[2]


def test_everything_that_is_installed_is_in_the_image():
    text = (ROOT / "pyproject.toml").read_text()
    [modules] = re.findall(r"^py-modules = \[(.*)\]$", text, re.MULTILINE)
    names = [f"{module}.py" for module in re.findall(r'"(\w+)"', modules)]
    included = (ROOT / ".dockerignore").read_text().splitlines()
    assert [name for name in (*names, *PACKAGES) if f"!{name}" not in included] == []
