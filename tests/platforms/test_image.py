"""The content of the container image, and what its containers may do."""

import hashlib
import json
import os
import re
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path

import pytest

from tests.checkout import copy_of_the_checkout
from tests.platforms.image_machine import (
    ROOT,
    build,
    buildah,
    built_image,
    image_tools,
    run_in_image,
)


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
        pytest.mark.exhaustive,
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

    def test_imports_nothing_from_the_working_directory(self, shell):
        foreign = "cd /tmp; echo 'raise SystemExit(7)' > trainer_module.py"
        assert "usage: " in shell(f"{foreign}; python -m trainer_module.task --help")

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

    def test_no_process_compiles_what_it_imports(self, image):
        """The image's user could not write it, and compiling TensorFlow takes long."""
        done = run_in_image(image, ["python", "-v", "-c", "import tensorflow, cli.compile"])
        read = re.findall(r"code object from '(/opt/venv/.*)'", done.stderr)
        assert len(read) > 1000
        assert [file for file in read if not file.endswith(".pyc")] == []

    def test_dataflow_can_build_the_tree_that_it_is_pointed_to(self, shell):
        """Build it with the function of Beam that implements `--setup_file`."""
        # The tests run the image with a read-only root.
        build = 'Stager._build_setup_package("/tmp/package/setup.py", "/tmp")'
        files = shell(
            "cp -r /opt/amazon-reviews /tmp/package && "
            "python -c 'from apache_beam.runners.portability.stager import Stager; "
            f"{build}' >/dev/null && tar tzf /tmp/amazon_reviews-*.tar.gz"
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
