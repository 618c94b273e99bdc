"""The container image: its build commands and its content."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from cli.app import app
from tests.checkout import copy_of_the_checkout
from tests.platforms.image_machine import (
    ROOT,
    build,
    buildah,
    built_image,
    image_tools,
    run_in_image,
)
from tools import bootstrap

IMAGE = "example/reviews/amazon-reviews:1"
DOCKERFILE = ROOT / "kubeflow" / "Dockerfile"
PACKAGES = [
    *("cli", "components", "core", "pipeline", "platforms", "preprocessing"),
    *("sample_data", "serving", "trainer_module"),
]


def dockerfile_argument(name):
    return re.search(rf"^ARG {name}=(.+)$", DOCKERFILE.read_text(), re.MULTILINE)[1]


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
    assert result.exit_code == 0
    assert Path(program).name == "docker"
    assert arguments[:3] == ["buildx", "build", "--load"]
    assert f"--tag={IMAGE}" in arguments
    assert f"--file={DOCKERFILE}" in arguments
    assert "--build-arg=VARIANT=cpu" in arguments
    assert not [each for each in arguments if "BASE" in each]
    assert re.search(r"--build-arg=SOURCE_DATE_EPOCH=[0-9]{10}\b", str(arguments))
    assert not [each for each in arguments if "--timestamp" in each]
    assert arguments[-1] == str(ROOT)
    assert re.search(r"--label=org.opencontainers.image.revision=[0-9a-f]{40}", str(arguments))
    # What is run is shown, to be repeated by hand.
    assert result.stdout == f"docker {' '.join(arguments)}\n"


def test_buildah_builds_where_there_is_no_docker(machine, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    call = machine("buildah")
    result, (program, *arguments) = call("build", "--gpu", "--base", "example/debian:13")
    assert (result.exit_code, Path(program).name, arguments[0]) == (0, "buildah", "bud")
    assert {"--build-arg=VARIANT=gpu", "--build-arg=BASE=example/debian:13"} < set(arguments)
    assert {"--build-arg=SOURCE_DATE_EPOCH=1700000000", "--timestamp=1700000000"} < set(arguments)
    result, (program, *arguments) = call("push")
    assert (Path(program).name, arguments) == ("buildah", ["push", IMAGE])


def test_cloud_build_gets_the_substitutions_of_its_steps(machine, monkeypatch):
    monkeypatch.setenv("PIPELINE_SET", f"cluster.image={IMAGE},vertex.project=my-project")
    result, (_, *arguments) = machine("gcloud")("build", "--tool", "cloudbuild", "--gpu")
    assert result.exit_code == 0
    file = ROOT / "kubeflow" / "cloudbuild.yaml"
    assert arguments[:5] == [
        *("builds", "submit", f"--config={file}", "--project=my-project"),
        arguments[4],
    ]
    given = dict(
        each.split("=", 1) for each in arguments[4].removeprefix("--substitutions=").split(",")
    )
    assert (given["_IMAGE"], given["_VARIANT"]) == (IMAGE, "gpu")

    build = yaml.safe_load(file.read_text())
    known = {"_IMAGE", *build["substitutions"]}
    assert set(given) <= known
    assert set(re.findall(r"\$\{(\w+)\}", json.dumps(build["steps"]))) == known
    assert build["substitutions"]["_BASE"] == dockerfile_argument("BASE")


def test_an_image_requires_a_name(machine, monkeypatch):
    monkeypatch.delenv("PIPELINE_SET")
    call = machine("docker")
    for command in ("build", "push"):
        result, called = call(command)
        assert result.exit_code == 2
        assert result.stderr.startswith("cluster.image: not set")
        assert called is None


@pytest.mark.parametrize(
    ("tools", "arguments", "message"),
    [
        ([], ["build"], "neither docker nor buildah is on PATH"),
        (["docker"], ["build", "--tool", "buildah"], "buildah is not on PATH"),
        (["docker"], ["build"], "docker buildx failed with exit code 7"),
        (["buildah"], ["push"], "buildah push failed with exit code 7"),
    ],
)
def test_a_failure_is_one_line_and_exit_code_1(machine, tools, arguments, message):
    result, _ = machine(*tools, code=7)(*arguments)
    assert result.exit_code == 1
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_an_installed_package_reports_that_it_requires_a_checkout(tmp_path):
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tmp_path / package)
    done = subprocess.run(
        [sys.executable, "-c", "from cli.command import main; main()", "image", "build"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path), "PIPELINE_SET": f"cluster.image={IMAGE}"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "checkout" in done.stderr
    assert done.stderr.count("\n") == 1


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


def test_image_and_checkout_are_installed_by_the_same_uv():
    assert dockerfile_argument("UV_VERSION") == bootstrap.UV_VERSION


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


# The image --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def image():
    return built_image()


def content_of(image):
    """Path of each file in an image -> the hash of its content."""
    container = buildah("from", image)
    try:
        root = Path(buildah("mount", container))
        return {
            str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in root.rglob("*")
            if path.is_file() and not path.is_symlink()
        }
    finally:
        buildah("rm", container)


def said_by(done):
    assert done.returncode == 0, done.stderr
    return done.stdout


class TestImage:
    pytestmark = [
        pytest.mark.slow,
        pytest.mark.xdist_group("image"),
        pytest.mark.timeout(1800),  # the first call builds it
    ]

    @pytest.fixture
    def shell(self, image):
        return lambda script: said_by(run_in_image(image, ["sh", "-euc", script]))

    @pytest.fixture
    def python(self, image):
        return lambda code: said_by(run_in_image(image, ["python", "-c", code]))

    def test_runs_the_entry_point_as_a_user_without_rights(self, image, shell):
        settings = json.loads(buildah("inspect", "--type", "image", image))["OCIv1"]["config"]
        assert settings["User"] == "1000:1000"
        assert settings["Entrypoint"] == ["python", "-m", "platforms.entrypoint"]
        assert settings["Labels"]["org.opencontainers.image.licenses"] == "Apache-2.0"
        assert shell('id -u; pwd; echo "$HOME"; command -v python').split() == [
            *("1000", "/home/pipeline", "/home/pipeline", "/opt/venv/bin/python")
        ]
        assert shell("find /opt/venv /usr ! -type l -writable") == ""

    def test_writes_to_tmp_only_and_has_no_rights(self, shell):
        """The containers of all tests are those of a restricted pod; here is the proof."""
        shell("touch /tmp/file")
        for folder in ("/", "$HOME", "/opt/amazon-reviews"):
            failed = shell(f'touch "{folder}/file" 2>&1 || true')
            assert "Read-only file system" in failed
        status = dict(line.split(":\t") for line in shell("cat /proc/self/status").splitlines())
        rights = [value for name, value in status.items() if name.startswith("Cap")]
        assert len(rights) == 5 and {int(value, 16) for value in rights} == {0}
        assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
        # A call that the default profile refuses, and root could make.
        assert "Operation not permitted" in shell("unshare --user true 2>&1 || true")

    def test_carries_what_the_package_needs_and_no_more(self, shell, python):
        listed = python(
            "from importlib.metadata import distributions\n"
            "for each in distributions(): print(each.name, each.version)"
        )
        names = dict(line.split() for line in listed.splitlines())
        installed = {re.sub("[-_.]+", "-", name).lower(): names[name] for name in names}
        lines = (ROOT / "requirements" / "tfx-1.21-py311.txt").read_text().splitlines()
        unpinned = {f"{name}=={installed[name]}" for name in installed}
        unpinned -= {re.split(r" [;\\]", line)[0] for line in lines}
        assert unpinned == {f"amazon-reviews=={metadata.version('amazon-reviews')}"}
        assert not {"pytest", "mypy", "ruff", "hypothesis", "pip", "uv"} & set(installed)

        assert shell("for each in gcc g++ cc make; do command -v $each || true; done") == ""
        assert shell("find /home /var/lib/apt/lists -type f -size +1M") == ""
        sizes = shell("du --summarize --block-size=1M /opt /usr").splitlines()
        megabytes = sum(int(line.split()[0]) for line in sizes)
        print(f"the image has {megabytes} MiB in /opt and /usr")
        assert megabytes < 4000

    def test_tfx_and_the_command_work_in_it(self, image, shell, python):
        versions = python(
            "import tensorflow, tfx.version\nprint(tensorflow.__version__, tfx.version.__version__)"
        )
        assert versions.split() == ["2.21.0", "1.21.0"]
        assert "Usage: amazon-reviews" in shell("amazon-reviews --help")

    def test_its_bill_of_materials_has_its_packages(self, image, monkeypatch):
        """`tools.sbom` runs the same source with docker or buildah."""
        pytest.importorskip("cyclonedx", reason="cyclonedx-python-lib: make install")
        from tools.sbom import bill, collect

        source = Path(collect.__file__).read_text()
        found = json.loads(said_by(run_in_image(image, ["python", "-c", source])))
        document = json.loads(bill.image_bill(found, image, "1", 0))
        purls = {each["purl"] for each in document["components"]}
        assert "pkg:pypi/tfx@1.21.0" in purls
        assert any(purl.startswith("pkg:deb/debian/python3.13-minimal@") for purl in purls)

    def test_no_process_compiles_what_it_imports(self, image):
        """The image's user could not write it, and compiling TensorFlow takes long."""
        done = run_in_image(image, ["python", "-v", "-c", "import tensorflow, cli.compile"])
        read = re.findall(r"code object from '(/opt/venv/.*)'", done.stderr)
        assert len(read) > 1000
        assert [file for file in read if not file.endswith(".pyc")] == []

    def test_dataflow_can_build_the_tree_that_it_is_pointed_to(self, shell):
        """Build it with the function of Beam that implements `--setup_file`."""
        copied = 'writable_setup_file(["--setup_file=/opt/amazon-reviews/setup.py"])'
        build = 'Stager._build_setup_package(argument.partition("=")[2], "/tmp")'
        files = shell(
            "python -c 'from apache_beam.runners.portability.stager import Stager; "
            "from platforms.entrypoint import writable_setup_file; "
            f"[argument] = {copied}; {build}' >/dev/null && tar tzf /tmp/amazon_reviews-*.tar.gz"
        )
        for file in ("pipeline/presets/sample.yaml", "preprocessing/schema/schema.pbtxt"):
            assert re.search(rf"^[^/]+/{file}$", files, re.MULTILINE)

    def test_two_builds_of_the_same_sources_give_the_same_image(self, tmp_path):
        """With few of the packages, one of them compiled, and the real Dockerfile.

        The folders and the times of the sources differ between the builds.
        """
        some = 'dependencies = ["pyfarmhash", "pyyaml", "setuptools", "typer", "pydantic>=2"]\n'
        checkouts = {f"localhost/twice:{name}": tmp_path / name for name in ("first", "second")}
        for number, folder in enumerate(checkouts.values()):
            copy_of_the_checkout(folder)
            project = folder / "pyproject.toml"
            text = project.read_text()
            few = re.sub(r"^dependencies = \[\n.*?^\]\n", some, text, flags=re.M | re.S)
            assert few != text
            project.write_text(few)
            for file in folder.rglob("*"):
                os.utime(file, (number, number))
        with image_tools() as base:
            with ThreadPoolExecutor() as pool:
                jobs = [
                    pool.submit(build, name, base, folder, folder / "build.log", "1700000000")
                    for name, folder in checkouts.items()
                ]
                for job in jobs:
                    job.result()
            digests = [content_of(name) for name in checkouts]
            ids = {buildah("images", "--quiet", "--no-trunc", name) for name in checkouts}
            for name in checkouts:
                buildah("rmi", name)
        # The files first, because a difference between them names the reason.
        assert {*digests[0].items()} ^ {*digests[1].items()} == set()
        assert len(ids) == 1
