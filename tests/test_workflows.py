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


def test_there_are_workflows_for_tests_image_and_release():
    assert [file.stem for file in FILES] == ["image", "release", "tests"]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_action_is_pinned_by_its_commit_with_its_version(file):
    lines = [line for line in file.read_text().splitlines() if re.search(r"\buses:", line)]
    assert len(lines) == sum("uses" in step for step in steps(yaml.safe_load(file.read_text())))
    for line in lines:
        assert re.fullmatch(r" +(- )?uses: [\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line), line


def test_one_version_of_each_action():
    text = "".join(file.read_text() for file in FILES)
    pinned = set(re.findall(r"uses: (\S+)@(\S+)", text))
    assert len(pinned) == len({action for action, _ in pinned})


def test_a_workflow_has_no_rights_but_those_that_a_job_names(workflow):
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        assert job["timeout-minutes"]
    for step in steps(workflow):
        if "actions/checkout@" in step.get("uses", ""):
            assert step["with"]["persist-credentials"] is False


def test_scripts_contain_no_text_that_others_choose(workflow):
    """An expression in a script is code: the name of a branch may contain a command."""
    for step in steps(workflow):
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


def test_no_file_names_a_registry_or_an_address():
    for file in [*FILES, CHECKOUT / ".github" / "dependabot.yml"]:
        assert not re.search(r"://|\b(ghcr|docker|quay|gcr)\.io\b", file.read_text()), file


def test_updates_are_proposed_for_actions_image_and_pins():
    updates = yaml.safe_load((CHECKOUT / ".github" / "dependabot.yml").read_text())["updates"]
    folders = {each["package-ecosystem"]: each["directory"] for each in updates}
    assert folders == {"github-actions": "/", "docker": "/kubeflow", "pip": "/requirements"}
    for folder in folders.values():
        assert (CHECKOUT / folder.strip("/")).is_dir()


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


def test_a_release_attests_its_packages_and_its_image():
    subjects = []
    for job in workflow_of("release")["jobs"].values():
        [attested] = [s for s in job["steps"] if "attest-build-provenance" in s.get("uses", "")]
        assert job["permissions"]["id-token"] == job["permissions"]["attestations"] == "write"
        subjects.append(attested["with"])
    packages, image = subjects
    assert packages == {"subject-path": "dist/*"}
    # The digest is that of the registry, so the image is pushed before.
    assert image["subject-digest"] == "${{ steps.pushed.outputs.digest }}"
    scripts = [step.get("run", "") for step in job["steps"]]
    pushes = [number for number, script in enumerate(scripts) if "image push" in script]
    [inspects] = [n for n, step in enumerate(job["steps"]) if step.get("id") == "pushed"]
    assert pushes == [inspects - 1] and job["steps"].index(attested) > inspects


@pytest.mark.parametrize("name", ["tests", "release"])
def test_the_pins_are_audited_before_a_merge_and_before_a_release(name):
    scripts = [step.get("run", "") for step in steps(workflow_of(name))]
    assert any(re.search(r"\bmake .*\baudit\b", script) for script in scripts)
