"""The content of the container image, and what its containers may do."""

import json
import re
from importlib import metadata

import pytest

from tests.platforms.image_machine import ROOT, buildah, built_image, run_in_image

pytestmark = [
    pytest.mark.slow,
    pytest.mark.exhaustive,
    pytest.mark.long,
    pytest.mark.xdist_group("image"),
    pytest.mark.timeout(1800),  # the first call builds it
]


@pytest.fixture(scope="module")
def image():
    return built_image()


@pytest.fixture
def shell(image):
    def call(script):
        done = run_in_image(image, ["sh", "-euc", script])
        assert done.returncode == 0, done.stderr
        return done.stdout

    return call


def test_runs_the_entry_point_as_a_user_without_rights(image, shell):
    settings = json.loads(buildah("inspect", "--type", "image", image))["OCIv1"]["config"]
    assert settings["User"] == "1000:1000"
    assert settings["Entrypoint"] == ["python", "-m", "platforms.entrypoint"]
    assert settings["Labels"]["org.opencontainers.image.licenses"] == "Apache-2.0"
    assert shell('id -u; pwd; echo "$HOME"; command -v python').split() == [
        *("1000", "/home/pipeline", "/home/pipeline", "/opt/venv/bin/python")
    ]
    assert shell("find /opt/venv /usr ! -type l -writable") == ""


def test_imports_nothing_from_the_working_directory(shell):
    foreign = "cd /tmp; echo 'raise SystemExit(7)' > trainer_module.py"
    assert "usage: " in shell(f"{foreign}; python -m trainer_module.task --help")


def test_carries_what_the_package_needs_and_no_more(shell):
    listed = shell(
        "python -c 'from importlib.metadata import distributions\n"
        "for each in distributions(): print(each.name, each.version)'"
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
    assert megabytes < 4000


def test_no_process_compiles_what_it_imports(image):
    """The image's user could not write it, and compiling TensorFlow takes long."""
    done = run_in_image(image, ["python", "-v", "-c", "import tensorflow, cli.compile"])
    read = re.findall(r"code object from '(/opt/venv/.*)'", done.stderr)
    assert len(read) > 1000
    assert [file for file in read if not file.endswith(".pyc")] == []


def test_dataflow_can_build_the_tree_that_it_is_pointed_to(shell):
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
