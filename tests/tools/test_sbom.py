"""The bill of materials: valid CycloneDX, complete, and the same for the same content."""

import json
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

pytest.importorskip("cyclonedx", reason="cyclonedx-python-lib is not installed: make install")

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from tools import bootstrap
from tools.sbom import __main__ as command
from tools.sbom import bill, collect

NO_NETWORK = """
import socket, sys

def hook(event, arguments):
    if event in ("socket.connect", "socket.sendto", "socket.getaddrinfo", "socket.gethostbyname"):
        raise PermissionError(event)

sys.addaudithook(hook)
try:
    socket.create_connection(("127.0.0.1", 9))
except PermissionError:
    print("no network")
from tools.sbom.__main__ import main
main()
"""

FOUND = {
    "python": {
        "amazon-reviews": {
            "version": "1.0",
            "license": "Apache-2.0",
            "requires": ["tfx"],
            "needed": True,
        },
        "tfx": {"version": "1.21.0", "license": "Apache 2.0", "requires": [], "needed": True},
        "pytest": {"version": "9.0", "license": "MIT", "requires": [], "needed": False},
    },
    "debian": [["libc6", "2.41-12", "amd64"], ["python3", "3.13.5-1", "amd64"]],
}


def checked(document):
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(document) is None
    return json.loads(document)


def purls(document):
    return {each["purl"] for each in document["components"]}


@pytest.fixture(scope="module")
def installed():
    return {"python": collect.python_packages()}


def test_the_package_lists_what_it_requires_with_the_pinned_versions(installed):
    document = checked(bill.package_bill(installed, 0))
    subject = document["metadata"]["component"]
    version = metadata.version("amazon-reviews")
    assert (subject["name"], subject["version"]) == ("amazon-reviews", version)
    found = purls(document)
    assert {f"pkg:pypi/tfx@{metadata.version('tfx')}"} < found
    stack = bootstrap.OLD if sys.version_info < (3, 11) else bootstrap.NEW
    pins = (Path(bootstrap.ROOT) / stack.requirements).read_text()
    names = {line.split("==")[0] for line in pins.splitlines() if "==" in line}
    assert {each.split("@")[0].removeprefix("pkg:pypi/") for each in found} <= names
    assert not {"pytest", "ruff"} & {each["name"] for each in document["components"]}
    [direct] = [e["dependsOn"] for e in document["dependencies"] if e["ref"] == subject["bom-ref"]]
    assert "pypi:tfx" in direct and "pypi:absl-py" not in direct


def test_an_image_lists_all_packages_of_python_and_debian():
    document = checked(bill.image_bill(FOUND, "host/amazon-reviews:1", "0123abc", 0))
    image = document["metadata"]["component"]
    assert (image["type"], image["version"]) == ("container", "1.0")
    commit = {"name": "org.opencontainers.image.revision", "value": "0123abc"}
    assert image["properties"] == [commit]
    assert purls(document) == {
        "pkg:pypi/amazon-reviews@1.0",
        "pkg:pypi/tfx@1.21.0",
        "pkg:pypi/pytest@9.0",
        "pkg:deb/debian/libc6@2.41-12?arch=amd64",
        "pkg:deb/debian/python3@3.13.5-1?arch=amd64",
    }


def test_the_same_content_gives_the_same_document():
    documents = {bill.package_bill(FOUND, 1_700_000_000) for _ in range(3)}
    assert len(documents) == 1
    [document] = documents
    assert json.loads(document)["metadata"]["timestamp"].startswith("2023-11-14T22:13:20")
    other = {**FOUND["python"], "tfx": {**FOUND["python"]["tfx"], "version": "1.22.0"}}
    changed = json.loads(bill.package_bill({"python": other}, 1_700_000_000))
    assert changed["serialNumber"] != json.loads(document)["serialNumber"]


def test_the_command_writes_the_files_of_a_release(tmp_path, monkeypatch, installed):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    command.main()
    version, tfx = metadata.version("amazon-reviews"), metadata.version("tfx")
    file = Path("dist", f"amazon-reviews-{version}-tfx-{tfx}.cdx.json")
    assert file.read_text() == bill.package_bill(installed, 0)
    monkeypatch.setattr(command, "collected_in", lambda image: FOUND)
    monkeypatch.setattr(command, "revision_of", lambda image: "0123abc")
    command.main("host/project/amazon-reviews:1")
    document = checked(Path("dist", "amazon-reviews-image-amazon-reviews-1.cdx.json").read_text())
    image = document["metadata"]["component"]
    assert image["name"] == "host/project/amazon-reviews:1"
    assert image["properties"][0]["value"] == "0123abc"


def test_the_package_is_listed_without_a_network(tmp_path):
    environ = {**os.environ, "PYTHONPATH": str(bootstrap.ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", NO_NETWORK],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    refused, file = done.stdout.splitlines()
    assert refused == "no network"
    assert "pkg:pypi/tfx@" in (tmp_path / file).read_text()


@pytest.mark.parametrize("tool", ["docker", "buildah"])
def test_the_container_that_lists_the_packages_of_an_image_has_no_network(
    tmp_path, monkeypatch, tool
):
    """The program fails without that option, and names its container as buildah does."""
    program = tmp_path / tool
    program.write_text(
        """#!/bin/sh
        case "$*" in
        "run "*"--network=none "*) echo '{"python": {}}';;
        "from image") echo container;;
        "rm container") touch "$0.removed";;
        *) exit 1;;
        esac"""
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    monkeypatch.setattr(command.shutil, "which", lambda name: name if name == tool else None)
    assert command.collected_in("image") == {"python": {}}
    assert (tmp_path / "buildah.removed").exists() == (tool == "buildah")


@pytest.mark.parametrize("tool", ["docker", "buildah"])
def test_the_commit_of_an_image_is_its_label(tmp_path, monkeypatch, tool):
    """The program prints the label that the format names, as the real one does."""
    program = tmp_path / tool
    label = "org.opencontainers.image.revision"
    program.write_text(f"""#!/bin/sh\ncase "$*" in *Labels*{label}*) cat "$0.out";; esac\n""")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    monkeypatch.setattr(command.shutil, "which", lambda name: name if name == tool else None)
    (tmp_path / f"{tool}.out").write_text("0123abc\n")
    assert command.revision_of("host/amazon-reviews:1") == "0123abc"
    (tmp_path / f"{tool}.out").write_text("\n")
    assert command.revision_of("host/amazon-reviews:1") == "unknown"


def test_the_image_runs_the_collection_without_this_package():
    """The file runs as text, by whatever Python the image has."""
    source = Path(collect.__file__).read_text()
    command = [sys.executable, "-c", source]
    printed = subprocess.run(command, cwd="/", capture_output=True, text=True, check=True).stdout
    found = json.loads(printed)
    assert found["python"]["tfx"]["version"] == metadata.version("tfx")
    assert found["python"]["amazon-reviews"]["needed"]
    assert not found["python"]["pytest"]["needed"]
