"""The targets of the Makefile that remove files, and the files that they keep."""

import subprocess
from pathlib import Path

import pytest

MAKEFILE = Path(__file__).parents[1] / "Makefile"
MODELS = ("runs/serving/17", "runs/amazon/serving/18")
KEPT = (
    *(f"{model}/saved_model.pb" for model in MODELS),
    ".venv/pyvenv.cfg",
    "cli/app.py",
    "data/train.bz2",
)
REMOVED = ("build/lib/a.py", "site/index.html", ".ruff_cache/a", "pipeline/__pycache__/cli.pyc")


def make(folder, target):
    done = subprocess.run(
        ["make", "-f", str(MAKEFILE), target], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def checkout(tmp_path):
    for name in (*KEPT, *REMOVED):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("")
    return tmp_path


def test_clean_keeps_the_runs_and_their_models(checkout):
    make(checkout, "clean")
    assert all((checkout / name).exists() for name in KEPT)
    assert not any((checkout / name).exists() for name in REMOVED)


def test_distclean_keeps_the_runs(checkout):
    make(checkout, "distclean")
    assert all((checkout / model / "saved_model.pb").exists() for model in MODELS)
    assert not (checkout / ".venv").exists()


def test_clean_runs_prints_what_it_removes(checkout):
    printed = make(checkout, "clean-runs")
    assert "removing runs: " in printed
    models = [line for line in printed.splitlines() if "pushed model" in line]
    assert models == [f"removing the pushed model {model}" for model in MODELS]
    assert not (checkout / "runs").exists()
    assert all((checkout / name).exists() for name in KEPT[len(MODELS) :])
    assert "nothing to remove" in make(checkout, "clean-runs")


def test_help_lists_clean_runs(tmp_path):
    assert "make clean-runs  remove runs/" in make(tmp_path, "help")
