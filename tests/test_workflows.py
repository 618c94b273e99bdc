"""The workflows of GitHub, which do not run here: what they name exists, and actions are pinned."""

from __future__ import annotations

import re
import subprocess
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


def test_a_workflow_has_no_rights_but_those_that_a_job_names(workflow):
    assert workflow["permissions"] == {"contents": "read"}
    for step in steps(workflow):
        if "actions/checkout@" in step.get("uses", ""):
            assert step["with"]["persist-credentials"] is False
        # An expression in a script is code: the name of a branch may contain a command.
        expressions = re.findall(r"\$\{\{\s*(.+?)\s*\}\}", step.get("run", ""))
        assert [each for each in expressions if not each.startswith("matrix.")] == []


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


def test_updates_are_proposed_for_folders_that_exist():
    updates = yaml.safe_load((CHECKOUT / ".github" / "dependabot.yml").read_text())["updates"]
    for update in updates:
        assert (CHECKOUT / update["directory"].strip("/")).is_dir()


@pytest.mark.parametrize("name", ["image", "release"])
def test_the_base_image_is_pinned_by_its_digest(name):
    scripts = [step.get("run", "") for step in workflow_of(name)["jobs"]["image"]["steps"]]
    [pins] = [number for number, script in enumerate(scripts) if "BASE=$base@$digest" in script]
    [builds] = [number for number, script in enumerate(scripts) if "image build" in script]
    assert pins < builds and '--base "$BASE"' in scripts[builds]
    [name_of_base] = re.findall(r"sed -n '(.+)' kubeflow/Dockerfile", scripts[pins])
    text = (CHECKOUT / "kubeflow" / "Dockerfile").read_text()
    found = subprocess.run(["sed", "-n", name_of_base], input=text, capture_output=True, text=True)
    assert re.fullmatch(r"[a-z]+:[\w.-]+\n", found.stdout)


@pytest.mark.parametrize("name", ["tests", "release"])
def test_the_pins_are_audited_before_a_merge_and_before_a_release(name):
    scripts = [step.get("run", "") for step in steps(workflow_of(name))]
    assert any(re.search(r"\bmake .*\baudit\b", script) for script in scripts)
