"""The workflows of GitHub, which do not run here: what they name exists, and actions are pinned."""

import re
from pathlib import Path

import pytest
import yaml

CHECKOUT = Path(__file__).parents[1]
FILES = sorted((CHECKOUT / ".github" / "workflows").glob("*.yml"))
WORKFLOWS = {file.stem: yaml.safe_load(file.read_text()) for file in FILES}


def scripts(name):
    jobs = WORKFLOWS[name]["jobs"].values()
    return "\n".join(step.get("run", "") for job in jobs for step in job["steps"])


def test_every_action_is_pinned_by_its_commit_with_its_version():
    lines = [line for file in FILES for line in file.read_text().splitlines() if "uses:" in line]
    assert len(lines) > 5
    for line in lines:
        assert re.fullmatch(r" +(- )?uses: [\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line), line


@pytest.mark.parametrize("name", WORKFLOWS)
def test_every_target_of_make_exists(name):
    called = re.findall(r"\bmake (PYTHON=\S+ )?([a-z -]+)", scripts(name))
    targets = {target for _, words in called for target in words.split()} - {"python"}
    known = re.findall(r"^([a-z-]+):", (CHECKOUT / "Makefile").read_text(), re.MULTILINE)
    assert targets and targets <= set(known)


def test_both_stacks_are_tested():
    matrix = WORKFLOWS["tests"]["jobs"]["test"]["strategy"]["matrix"]
    stacks = {each["tfx"] for each in matrix["include"]}
    files = (CHECKOUT / "requirements").glob("tfx-*-py*.txt")
    assert stacks == {file.name.split("-")[1] for file in files}


@pytest.mark.parametrize("name", ["tests", "release"])
def test_the_pins_are_audited_before_a_merge_and_before_a_release(name):
    assert re.search(r"\bmake .*\baudit\b", scripts(name))
