"""The workflows of GitHub, which do not run here: what they name exists, and actions are pinned."""

import re
from pathlib import Path

import pytest
import yaml

CHECKOUT = Path(__file__).parents[1]
FILES = sorted((CHECKOUT / ".github" / "workflows").glob("*.yml"))


@pytest.fixture(params=FILES, ids=lambda file: file.stem)
def workflow(request):
    return yaml.safe_load(request.param.read_text())


def workflow_of(name):
    return yaml.safe_load((CHECKOUT / ".github" / "workflows" / f"{name}.yml").read_text())


def steps(workflow):
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def test_every_action_is_pinned_by_its_commit_with_its_version():
    lines = [line for file in FILES for line in file.read_text().splitlines() if "uses:" in line]
    assert len(lines) > 5
    for line in lines:
        assert re.fullmatch(r" +(- )?uses: [\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line), line


def test_every_target_of_make_exists(workflow):
    scripts = "\n".join(step.get("run", "") for step in steps(workflow))
    called = re.findall(r"\bmake (PYTHON=\S+ )?([a-z -]+)", scripts)
    targets = {target for _, words in called for target in words.split()} - {"python"}
    known = re.findall(r"^([a-z-]+):", (CHECKOUT / "Makefile").read_text(), re.MULTILINE)
    assert targets and targets <= set(known)


def test_both_stacks_are_tested():
    stacks = {
        each["tfx"]
        for each in workflow_of("tests")["jobs"]["test"]["strategy"]["matrix"]["include"]
    }
    files = (CHECKOUT / "requirements").glob("tfx-*-py*.txt")
    assert stacks == {file.name.split("-")[1] for file in files}


@pytest.mark.parametrize("name", ["tests", "release"])
def test_the_pins_are_audited_before_a_merge_and_before_a_release(name):
    scripts = [step.get("run", "") for step in steps(workflow_of(name))]
    assert any(re.search(r"\bmake .*\baudit\b", script) for script in scripts)
