"""The documentation: it builds without a dead link, and loads nothing from other hosts."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.browser import open_browser
from tests.waiting import wait

CHECKOUT = Path(__file__).parents[1]
DOCS = CHECKOUT / "docs"
MKDOCS = CHECKOUT / ".cache" / "docs" / "venv" / "bin" / "mkdocs"
# The addresses that a browser loads; it does not load that of `a`.
_LOADED = re.compile(
    r'<(?:link(?![^>]*rel="(?:canonical|next|prev)")|script|img|iframe|source)\b'
    r'[^>]*? (?:href|src)="([^"]*)"'
)
# How code names a page, in messages, docstrings and comments.
_MENTION = re.compile(r"\bdocs/[\w./-]+\.(?:md|svg)\b")
_LINK = re.compile(r"\]\((?![a-z]+:)([^)#\s]*)#?([^)\s]*)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
OTHER_PAGES = ("README.md", "CONTRIBUTING.md", "SECURITY.md")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Build the documentation; return its folder."""
    folder = tmp_path_factory.mktemp("site")
    options = {"cwd": CHECKOUT, "capture_output": True, "text": True, "timeout": 600}
    made = subprocess.run(
        ["make", f"BIN={Path(sys.executable).parent}", "docs-venv"],
        env={**os.environ, "PIP_RETRIES": "1", "PIP_DEFAULT_TIMEOUT": "10"},
        **options,
    )
    if made.returncode:
        pytest.skip(f"no environment for MkDocs: {made.stderr.strip()[-300:]}")
    built = subprocess.run(
        [MKDOCS, "build", "--strict", "--quiet", "--site-dir", folder],
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        **options,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.xdist_group("site")
def test_the_site_has_every_page_and_no_page_loads_anything_from_another_host(site):
    pages = {page.relative_to(DOCS).with_suffix(".html") for page in DOCS.rglob("*.md")}
    assert pages <= {page.relative_to(site) for page in site.rglob("*.html")}
    for page in site.rglob("*.html"):
        loaded = _LOADED.findall(page.read_text(encoding="utf-8"))
        assert loaded
        assert not [address for address in loaded if re.match(r"(https?:)?//", address)], page
    for style in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*[\"']?(https?:)?//", style.read_text()), style


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.xdist_group("site")
@pytest.mark.parametrize("page", ["index.html", "how-to/serve.html"])
def test_the_search_works_on_a_page_that_is_opened_as_a_file(site, page):
    with open_browser() as browser:
        browser.get((site / page).as_uri())
        browser.execute_script("document.querySelector('#__search').click()")
        field = browser.find_element("css selector", "input.md-search__input")
        browser.execute_script("arguments[0].focus()", field)
        field.send_keys("rollback")
        wait(lambda: "commands.html" in _results(browser))


def _results(browser):
    """Return the addresses of the pages that the search found."""
    links = "document.querySelectorAll('a.md-search-result__link')"
    return browser.execute_script(f"return Array.from({links}, (link) => link.href).join(' ')")


def test_every_page_that_code_mentions_exists():
    listed = subprocess.run(
        ["git", "ls-files", "*.py", "*.yaml", "*.toml", "*.sh", "Makefile", "README.md"],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=True,
    )
    mentioned = {
        (name, page)
        for name in listed.stdout.split()
        if name != "tests/test_docs.py"
        for page in _MENTION.findall((CHECKOUT / name).read_text(encoding="utf-8"))
    }
    assert mentioned
    assert not [pair for pair in mentioned if not (CHECKOUT / pair[1]).exists()]


@pytest.mark.parametrize("name", ["kubeflow", "vertex"])
def test_the_messages_of_a_guide_are_those_of_the_code(name):
    page = (DOCS / "how-to" / f"{name}.md").read_text(encoding="utf-8")
    rows = page.split("## Troubleshooting\n")[1].splitlines()
    cells = [row.split(" | ")[0] for row in rows if row.startswith("| `")]
    messages = [message for cell in cells for message in re.findall("`([^`]+)`", cell)]
    # Upper-case words and ellipses replace values.
    pieces = {
        piece.strip(" :") for text in messages for piece in re.split("…|[A-Z]+(?![a-z])", text)
    }
    pieces = {piece for piece in pieces if " " in piece}
    packages = ("cli", "components", "core", "pipeline", "platforms")
    files = [file for package in packages for file in (CHECKOUT / package).rglob("*.py")]
    code = "\n".join(file.read_text(encoding="utf-8") for file in files)
    known = re.sub(r'"\s+f?"', "", code)  # the strings of a message as one
    assert len(pieces) > 8
    assert not [piece for piece in pieces if piece not in known]


def test_the_linked_files_and_headings_exist():
    pages = [*DOCS.rglob("*.md"), *(CHECKOUT / name for name in OTHER_PAGES)]
    texts = {page: page.read_text(encoding="utf-8") for page in pages}
    broken = []
    for page, text in texts.items():
        for name, heading in _LINK.findall(text):
            target = (page.parent / name).resolve() if name else page
            anchors = map(_anchor, _HEADING.findall(texts.get(target, "")))
            if not target.exists() or (heading and heading not in anchors):
                broken.append(f"{page.relative_to(CHECKOUT)}: {name}#{heading}")
    assert broken == []


def _anchor(heading):
    """Return the anchor of a heading, as MkDocs and GitHub make it."""
    words = re.sub(r"[^\w\s-]", "", heading.replace("`", "")).strip().lower()
    return re.sub(r"\s+", "-", words)


def test_the_command_of_every_day_deletes_only_old_outputs_of_components(tmp_path):
    page = (CHECKOUT / "docs" / "how-to" / "every-day.md").read_text(encoding="utf-8")
    [command] = re.findall("^find .*$", page, re.MULTILINE)
    kept = [
        "runs/Trainer/model/35/Format-Serving/saved_model.pb",
        "runs/Trainer/.system/executor_execution/8/file",
        "runs/serving/1795982069/variables/variables.index",
        "runs/served/1795982069-eb135ea7d0742533/Format-Serving/saved_model.pb",
        "runs/spans/3/ReviewExampleGen/3-1/file",
        "runs/checkpoints/0123456789abcdef-01234567/1-checkpoint",
        "runs/logs/20261129-195410.log",
        "runs/metadata.sqlite",
    ]
    removed = ["runs/Trainer/model/8/Format-Serving/saved_model.pb", "runs/Pusher/pushed_model/9/a"]
    for name in (*kept, *removed):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    old = time.time() - 40 * 24 * 3600
    for path in tmp_path.rglob("*"):
        # The outputs of execution 35 are those of today.
        if "35" not in path.relative_to(tmp_path).parts:
            os.utime(path, (old, old))
    subprocess.run(["bash", "-c", command], cwd=tmp_path, check=True)
    assert [name for name in kept if not (tmp_path / name).exists()] == []
    assert [name for name in removed if (tmp_path / name).exists()] == []


def test_the_line_for_cron_needs_no_activated_environment(tmp_path):
    page = (CHECKOUT / "docs" / "how-to" / "every-day.md").read_text(encoding="utf-8")
    [line] = re.findall(r"^17 3 \* \* \*  (.+?) +†$", page, re.MULTILINE)
    folder, command = re.fullmatch(r"cd (\S+) && (\S+) .*", line).groups()
    program = tmp_path / "amazon-reviews"
    program.write_text('#!/bin/sh\npwd\necho "$@"\n')
    program.chmod(0o755)
    # Cron itself replaces `\\%`.
    line = line.replace(command, str(program)).replace(folder, str(tmp_path)).replace("\\%", "%")
    done = subprocess.run(
        ["/bin/sh", "-c", line],
        cwd="/",
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )
    where, words = done.stdout.splitlines()
    assert where == str(tmp_path)
    assert re.fullmatch(r"run --config daily.yaml --set data.span=\d{4}-\d\d-\d\d-1d", words)
