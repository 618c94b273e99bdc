"""The wheel of `python -m build` runs the pipeline where there is no checkout."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.checkout import copy_of_the_checkout

pytestmark = [pytest.mark.slow, pytest.mark.exhaustive]

# Two thousand reviews are too few for a good model.
SETTINGS = "data.max_examples.train=2000,data.max_examples.eval=200,data.max_examples.test=200"
SETTINGS += ",training.epochs=1,serving_check.min_golden=0"
SETTINGS += ",evaluation.min_accuracy=0.3,evaluation.min_class_recall=0"


def _install(folder):
    """Return the programs of an environment with the wheel, and with the libraries of this one."""
    pytest.importorskip("build", reason="build is not installed: make install")
    tree = copy_of_the_checkout(folder / "tree")
    dist, venv = folder / "dist", folder / "venv"
    _run(sys.executable, "-m", "build", "--no-isolation", "--outdir", dist, cwd=tree)
    assert len(list(dist.glob("amazon_reviews-*.tar.gz"))) == 1
    [wheel] = dist.glob("amazon_reviews-*.whl")
    _run(sys.executable, "-m", "venv", "--without-pip", venv)
    install = ["--python", venv / "bin" / "python", "install", "--no-deps", "--no-index", wheel]
    _run(sys.executable, "-m", "pip", "--quiet", *install)
    [site] = venv.glob("lib/python*/site-packages")
    # Python reads no .pth in a folder that a .pth names, so the checkout is not on the path.
    (site / "libraries.pth").write_text(sysconfig.get_path("purelib"))
    shutil.rmtree(tree)
    return venv / "bin"


def _run(*command, **options):
    environ = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    words = [str(word) for word in command]
    done = subprocess.run(words, env=environ, capture_output=True, text=True, **options)
    assert done.returncode == 0, (done.stdout + done.stderr)[-5000:]
    return done.stdout


def test_the_wheel_pushes_a_model_without_a_checkout(tmp_path):
    bin_folder = _install(tmp_path)
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    origin = "import cli; print(cli.__file__)"
    assert str(bin_folder.parent) in _run(bin_folder / "python", "-c", origin, cwd=folder)
    from_preset = "from pipeline import config, inputs; c = config.load_config('stars', environ={})"
    stars = f"{from_preset}; print(*(file.path for file in inputs.input_files(c).files))"
    assert "stars.csv" in _run(bin_folder / "python", "-c", stars, cwd=folder)
    overrides = [f"--set={each}" for each in SETTINGS.split(",")]
    printed = _run(bin_folder / "amazon-reviews", "run", *overrides, cwd=folder)
    assert "\nverdict   The model is blessed and was pushed: " in printed
    [pushed] = (folder / "runs" / "serving").iterdir()
    assert (pushed / "saved_model.pb").is_file()


def test_two_builds_of_the_same_sources_have_the_same_bits(tmp_path, monkeypatch):
    """The folders and the times of the sources differ, as in two checkouts."""
    pytest.importorskip("build", reason="build is not installed: make install")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    built = []
    for number in (1, 2):
        tree = copy_of_the_checkout(tmp_path / f"tree{number}")
        for file in tree.rglob("*"):
            os.utime(file, (number * 1_000_000_000,) * 2)
        (tree / ".cache").mkdir()
        # The environment is that of the tests.
        words = ("--old-file=install", f"BIN={Path(sys.executable).parent}", "package")
        _run("make", "--silent", *words, cwd=tree)
        built.append({file.name: file.read_bytes() for file in (tree / "dist").iterdir()})
    assert len(built[0]) == 2
    assert built[0].keys() == built[1].keys()
    assert [name for name in built[0] if built[0][name] != built[1][name]] == []
