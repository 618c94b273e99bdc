"""The guides that extend the project: their code is applied to a copy of it and tested there."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.checkout import CHECKOUT, copy_of_the_checkout

pytestmark = [pytest.mark.slow, pytest.mark.exhaustive]

PAGES = CHECKOUT / "docs" / "how-to"
GUIDES = sorted(page.stem for page in PAGES.glob("add-*.md"))
_BLOCK = re.compile(r'^```(python|diff) title="([^"]+)"\n(.*?)^```$', re.DOTALL | re.MULTILINE)
_TEST_COMMAND = re.compile(r"^\.venv/bin/python (-m pytest .+)$", re.MULTILINE)


def apply(page: str, folder: Path) -> list[str]:
    """Apply every block of code with a title; return the titles."""
    blocks = _BLOCK.findall(page)
    for kind, title, text in blocks:
        if kind == "python":
            file = folder / title
            assert not file.exists(), f"{title} exists already"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        else:
            assert text.startswith(f"--- a/{title}\n+++ b/{title}\n")
            applied = subprocess.run(
                ["git", "apply", "-"],
                input=text,
                cwd=folder,
                env={**os.environ, "GIT_CEILING_DIRECTORIES": str(folder.parent)},
                capture_output=True,
                text=True,
            )
            assert applied.returncode == 0, f"{title}: {applied.stderr}"
    return [title for _, title, _ in blocks]


def run(folder: Path, *arguments: str) -> None:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        timeout=800,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("guide", GUIDES)
def test_the_code_of_a_guide_works(tmp_path, guide):
    page = (PAGES / f"{guide}.md").read_text(encoding="utf-8")
    folder = copy_of_the_checkout(tmp_path)
    titles = apply(page, folder)
    run(folder, "-m", "ruff", "check", "--quiet", *titles)
    run(folder, "-m", "ruff", "format", "--check", "--quiet", *titles)
    [command] = _TEST_COMMAND.findall(page)
    assert shlex.split(command)[-1] in titles
    run(folder, *shlex.split(command), "-q", "-p", "no:cacheprovider", "-p", "no:xdist")
