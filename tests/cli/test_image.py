"""The container image: its build commands, its Dockerfile and the package in it."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli import image
from cli.app import app
from core.code_version import PACKAGES
from tests.platforms.image_machine import ROOT
from tools import install
from tools.install import NEW

IMAGE = "example/reviews/amazon-reviews:1"
DOCKERFILE = ROOT / "kubeflow" / "Dockerfile"


# The commands -----------------------------------------------------------------------------


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine with the given tools; each of them records its arguments."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "git").symlink_to(shutil.which("git"))
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setenv("PIPELINE_SET", f"cluster.image={IMAGE}")

    def with_tools(*tools, code=0):
        for tool in tools:
            script = f'#!/bin/sh\nprintf "%s\\n" "$0" "$@" > {tmp_path}/called\nexit {code}\n'
            (programs / tool).write_text(script)
            (programs / tool).chmod(0o755)

        def call(*arguments):
            result = CliRunner().invoke(app, ["image", *arguments])
            called = tmp_path / "called"
            return result, called.read_text().splitlines() if called.exists() else None

        return call

    return with_tools


def test_docker_builds_the_checkout_under_the_name_of_the_settings(machine):
    result, (program, *arguments) = machine("docker", "buildah")("build")
    assert (result.exit_code, Path(program).name) == (0, "docker")
    assert arguments[:3] == ["buildx", "build", "--load"]
    named = {f"--tag={IMAGE}", f"--file={DOCKERFILE}", "--build-arg=VARIANT=cpu"}
    assert named < set(arguments)
    assert re.search(r"--build-arg=SOURCE_DATE_EPOCH=[0-9]{10}\b", str(arguments))
    assert arguments[-1] == str(ROOT)
    assert re.search(r"--label=org.opencontainers.image.revision=[0-9a-f]{40}", str(arguments))
    # The command prints what it runs, so that a user can repeat it by hand.
    assert result.stdout == f"docker {' '.join(arguments)}\n"


def test_buildah_builds_without_docker(machine, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    call = machine("buildah")
    result, (program, *arguments) = call("build", "--gpu", "--base", "example/debian:13")
    assert (result.exit_code, Path(program).name, arguments[0]) == (0, "buildah", "bud")
    assert {"--build-arg=VARIANT=gpu", "--build-arg=BASE=example/debian:13"} < set(arguments)
    assert {"--build-arg=SOURCE_DATE_EPOCH=1700000000", "--timestamp=1700000000"} < set(arguments)
    result, (program, *arguments) = call("push")
    assert (Path(program).name, arguments) == ("buildah", ["push", IMAGE])


def test_an_image_requires_a_name(machine, monkeypatch):
    monkeypatch.delenv("PIPELINE_SET")
    result, called = machine("docker")("push")
    assert (result.exit_code, called) == (2, None)
    assert result.stderr.startswith("cluster.image: not set")


@pytest.mark.parametrize("action", ["build", "push"])
def test_an_image_that_is_built_has_no_digest(machine, monkeypatch, action):
    monkeypatch.setenv("PIPELINE_SET", f"cluster.image={IMAGE}@sha256:{'0' * 64}")
    result, called = machine("docker")(action)
    assert (result.exit_code, called) == (2, None)
    assert result.stderr.startswith(f"cluster.image: {IMAGE}@sha256:{'0' * 64} has a digest, which")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("tools", "arguments", "message"),
    [
        ([], ["build"], "buildah is not on PATH: install docker or buildah"),
        (["docker"], ["build"], "docker buildx failed with exit code 7"),
        (["buildah"], ["push"], "buildah push failed with exit code 7"),
    ],
)
def test_a_failure_is_one_line_and_exit_code_1(machine, tools, arguments, message):
    result, _ = machine(*tools, code=7)(*arguments)
    assert result.exit_code == 1
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_an_installed_package_reports_that_it_requires_a_checkout(machine, tmp_path, monkeypatch):
    monkeypatch.setattr(image, "_CHECKOUT", tmp_path)
    result, called = machine("docker")("build")
    assert (result.exit_code, called) == (1, None)
    assert "is not a checkout of the repository" in result.stderr


# The Dockerfile and the package -----------------------------------------------------------


def test_dockerfile_is_clean():
    linter = shutil.which("hadolint", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if not linter:
        pytest.skip("hadolint is not installed")
    done = subprocess.run([linter, "--no-color", DOCKERFILE], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_image_names_its_user_by_number():
    """Kubernetes cannot verify that a user name is not root, and refuses the container."""
    user = re.findall(r"^USER (\S+)$", DOCKERFILE.read_text(), re.MULTILINE)[-1]
    assert int(user.partition(":")[0]) > 0


def test_the_image_installs_nothing_without_its_hash():
    """`.venv` is installed from the same files, see tests/tools/test_install.py."""
    text = DOCKERFILE.read_text().replace("\\\n", " ")
    of_uv, of_packages, of_ours = re.findall(r"(pip install .*?)(?:&&|\n)", text)
    assert f"--require-hashes --requirement {install.UV_REQUIREMENTS}" in of_uv
    assert "--require-hashes" in of_packages
    assert f"--build-constraints {NEW.requirements}" in of_packages
    assert "--no-deps --no-build-isolation" in of_ours


def test_every_data_file_of_the_packages_is_in_the_wheel(tmp_path):
    tree = tmp_path / "tree"
    for name in PACKAGES:
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree)
    command = "import sys; from setuptools import build_meta as b; b.build_wheel(sys.argv[1])"
    subprocess.run(
        [sys.executable, "-c", command, tmp_path], cwd=tree, check=True, capture_output=True
    )
    [wheel] = tmp_path.glob("*.whl")
    packed = set(zipfile.ZipFile(wheel).namelist())
    files = {file for name in PACKAGES for file in (ROOT / name).rglob("*.*") if file.is_file()}
    files = {str(file.relative_to(ROOT)) for file in files if "__pycache__" not in file.parts}
    assert {"pipeline/presets/gke.yaml", "preprocessing/schema/schema.pbtxt"} < files
    assert files - packed == set()


def test_everything_that_is_installed_is_in_the_image():
    [modules] = re.findall(r"^py-modules = \[(.*)\]$", (ROOT / "pyproject.toml").read_text(), re.M)
    names = [f"{module}.py" for module in re.findall(r'"(\w+)"', modules)]
    included = (ROOT / ".dockerignore").read_text().splitlines()
    assert [name for name in (*names, *PACKAGES) if f"!{name}" not in included] == []
