"""The guides that extend the package or a project: their code is applied to a copy and used there.

The project is the folder `mine` in the copy, which `amazon-reviews init mine` creates.
"""

import itertools
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cli.init import create_project
from tests.checkout import CHECKOUT, copy_of_the_checkout
from tests.pages import is_alike

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


def page_of(guide: str) -> str:
    return (PAGES / f"{guide}.md").read_text(encoding="utf-8")


def run(folder: Path, *command: str, timeout: int = 800) -> str:
    """Run a command in a copy of the checkout; return its output."""
    environ = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTEST_", "PIPELINE_"))
    }
    done = subprocess.run(
        command,
        cwd=folder,
        env={**environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_guides_to_a_project_begin_with_it_and_touch_one_file():
    for guide in ("add-a-model", "add-a-component"):
        page = page_of(guide)
        assert ".venv/bin/amazon-reviews init mine\n" in page
        [(_, title, _)] = _BLOCK.findall(page)
        assert title.startswith("mine/")


def last_step(page: str) -> tuple[str, list[str]]:
    """Return the commands of the section "Use it", and the lines that it shows of their output."""
    section = re.split(r"^## \d+\. Use it$", page, flags=re.MULTILINE)[1]
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
    commands, shown = ("".join(text for kind, text in blocks if kind == of) for of in ("sh", ""))
    return commands, shown.splitlines()


def use(folder: Path, page: str) -> None:
    """Run the last step of a guide, and compare its output with the page."""
    commands, shown = last_step(page)
    assert commands and shown
    programs = Path(sys.executable).parent
    # The environment is that of the tests. Its package is not the copy, which PYTHONPATH has.
    commands = commands.replace(".venv/bin/amazon-reviews", "python amazon_reviews_start.py")
    commands = commands.replace(".venv/bin/", "")
    commands = commands.replace("make ", f"make --silent PYTHON=true BIN={programs} ")
    printed = run(folder, "bash", "-c", f"set -eu; PATH={programs}:$PATH\n{commands}")
    lines = printed.splitlines()
    for line in shown:
        line = line.replace("/home/you/amazon-reviews", str(folder))
        assert any(is_alike(line, other) for other in lines), f"{line}\n--- printed:\n{printed}"


def test_the_guides_can_be_applied_one_after_the_other_in_any_order(tmp_path):
    changed = {
        title
        for guide in GUIDES
        for kind, title, _ in _BLOCK.findall(page_of(guide))
        if kind == "diff"
    }
    orders = [tuple(GUIDES), *itertools.permutations(GUIDES, 2)]
    for number, order in enumerate(orders):
        folder = tmp_path / str(number)
        create_project(folder / "mine")
        for title in changed:
            if (folder / title).exists():
                continue
            (folder / title).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(CHECKOUT / title, folder / title)
        for guide in order:
            apply(page_of(guide), folder)


@pytest.mark.parametrize("guide", GUIDES)
def test_every_guide_shows_the_output_of_its_last_step(guide):
    commands, shown = last_step(page_of(guide))
    assert "amazon-reviews run" in commands and shown


@pytest.mark.parametrize("guide", GUIDES)
@pytest.mark.slow
@pytest.mark.exhaustive
def test_the_code_of_a_guide_works(tmp_path, guide):
    page = page_of(guide)
    folder = copy_of_the_checkout(tmp_path)
    create_project(folder / "mine")
    titles = apply(page, folder)
    run(folder, sys.executable, "-m", "ruff", "check", "--quiet", *titles)
    run(folder, sys.executable, "-m", "ruff", "format", "--check", "--quiet", *titles)
    # The last step of a guide to a project is its test.
    for command in _TEST_COMMAND.findall(page):
        assert shlex.split(command)[-1] in titles
        options = ("-q", "-p", "no:cacheprovider", "-p", "no:xdist")
        run(folder, sys.executable, *shlex.split(command), *options)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_the_last_step_of_each_guide_prints_what_is_on_its_page(tmp_path):
    """All guides are applied, in their order."""
    folder = copy_of_the_checkout(tmp_path)
    create_project(folder / "mine")
    for guide in GUIDES:
        apply(page_of(guide), folder)
    for guide in GUIDES:
        use(folder, page_of(guide))
