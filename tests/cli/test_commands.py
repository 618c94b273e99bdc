"""The common behaviour of all commands: their settings, errors and imports."""

import re
import subprocess
import sys
from importlib.metadata import version
from itertools import pairwise

import pytest
import typer
from typer.testing import CliRunner

from cli.app import app
from tests.checkout import CHECKOUT
from tests.loaded import run_command

SUBCOMMANDS = {"image": ("build", "push"), "data": ("fetch",)}
ALL = [
    *((name,) for name in typer.main.get_command(app).commands if name not in SUBCOMMANDS),
    *((name, sub) for name, subs in SUBCOMMANDS.items() for sub in subs),
]
WITH_SETTINGS = [command for command in ALL if command != ("init",)]
NEEDED = {
    "compile": ("--target", "vertex"),
    "submit": ("--target", "kubeflow"),
    "schedule": ("--target", "kubeflow", "--remove"),
    "watch": ("--input", "new.csv"),
}
HEAVY = {"apache_beam", "kfp", "ml_metadata", "numpy", "pyarrow", "requests", "tensorflow", "tfx"}


@pytest.mark.parametrize("command", WITH_SETTINGS, ids=" ".join)
def test_every_command_that_reads_settings_takes_them(command, monkeypatch):
    monkeypatch.delenv("PIPELINE_SET", raising=False)
    words = [*command, *NEEDED.get(command[0], ()), "--set", "training.epochs=none"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 2
    assert result.stderr.endswith(
        "sample.yaml with --set: training.epochs: must be an integer, not 'none'\n"
    )
    result = CliRunner().invoke(app, [*words[:-2], "--config", "no-such-file"])
    assert (result.exit_code, "no-such-file" in result.stderr) == (2, True)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("serve", "--port", "99999"), "'--port': must be at most 65535"),
        (("serve", "--port", "http"), "'--port': must be an integer"),
        (("compile", "--target", "kubefow"), "'--target': 'kubefow' is not one of"),
        (("compile",), "Missing option '--target'"),
    ],
)
def test_a_wrong_value_of_an_option_is_named_in_own_words(words, problem):
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 2
    assert problem in result.stderr


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (("run", "--config", ""), "--config"),
        (("run", "--set", ""), "--set"),
        (("predict", "--input", "a.csv", "--output", " "), "--output"),
        (("compile", "--target", "vertex", "--output", ""), "--output"),
        (("submit", "--target", "vertex", "--parameter", "epochs=3", "--parameter="), "--param"),
        (("report", "--run", ""), "--run"),
        (("runs", "compare", "2026", ""), "SECOND"),
        (("image", "build", "--base="), "--base"),
        (("data", "check", ""), "FOLDER"),
        (("data", "convert", " ", "new"), "FOLDER"),
        (("data", "convert", "old", ""), "NEW_FOLDER"),
        (("init", ""), "FOLDER"),
        (("watch", "--input", "a.csv", ""), "FILES"),
    ],
)
def test_an_empty_value_is_refused(words, option):
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 2
    assert result.stderr.startswith(option) and ": the value is empty" in result.stderr
    assert result.stderr.count("\n") == 1


HELP = f"""
import sys
from typer.testing import CliRunner
from cli.app import app
for words in {[(), *ALL]}:
    assert CliRunner().invoke(app, [*words, "--help"]).exit_code == 0
print(*sys.modules)
"""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--config", "sample", "compare", "a", "b"), "--config: compare takes only --config and"),
        (("--json", "--set", "a=1", "compare", "a", "b"), "--json, --set: compare takes only"),
        (("--json", "--html", "runs.html"), "--json and --html exclude each other; set one"),
    ],
)
def test_no_option_of_the_list_of_runs_is_ignored(words, message):
    result = CliRunner().invoke(app, ["runs", *words])
    assert (result.exit_code, result.stderr.startswith(message)) == (2, True), result.stderr


@pytest.mark.parametrize("option", ["--config", "-c", "--set"])
def test_an_option_before_the_command_is_one_line(option):
    result = CliRunner().invoke(app, [option, "training.epochs=3", "run"])
    assert (result.exit_code, len(result.stderr.splitlines())) == (2, 1)
    assert "--config and --set follow the command, such as `amazon-reviews run" in result.stderr


@pytest.mark.parametrize("command", ["run", "serve", "models", "compile"])
@pytest.mark.parametrize(
    ("word", "written"),
    [
        ("my file.yaml", "--config 'my file.yaml'"),
        ("stars", "--config stars"),
        ("training.epochs=3", "--set training.epochs=3"),
    ],
)
def test_settings_without_their_option_are_one_line(command, word, written):
    result = CliRunner().invoke(app, [command, word])
    assert (result.exit_code, result.stderr) == (2, f"{word} is no argument; write {written}\n")


def test_help_imports_no_large_library():
    done = subprocess.run([sys.executable, "-c", HELP], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) & {*HEAVY, "core.settings", "pipeline.config"} == set()


def test_the_list_of_runs_needs_no_tensorflow(tmp_path):
    done, _, loaded = run_command("runs", "--set", f"paths.root={tmp_path}")
    assert "no run in" in done.stderr
    assert loaded & {"apache_beam", "tensorflow", "tfx"} == set()


def test_overrides_may_be_repeated_and_the_last_one_wins(monkeypatch):
    monkeypatch.setenv("PIPELINE_SET", "training.epochs=none,paths.root=/a")
    words = ["runs", "--set", "training.epochs=3,paths.root=/b", "--set", "paths.root=/no/c"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 2
    assert "/no/c" in result.stderr


def test_a_wrong_word_is_refused_with_a_suggestion():
    for words, problem in (
        (["predct"], "No such command 'predct'. Did you mean 'predict'?"),
        (["runs", "compre"], "Did you mean 'compare'?"),
    ):
        result = CliRunner().invoke(app, words)
        assert result.exit_code == 2
        assert problem in result.stderr


def test_a_shell_whose_files_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / ".bashrc").mkdir()
    done, out, _ = run_command("--install-completion", "bash", HOME=str(tmp_path))
    assert (done.returncode, out, done.stderr) == (
        2,
        "",
        f"--install-completion: {tmp_path}/.bashrc cannot be written: Is a directory\n",
    )


def test_the_version_is_one_line():
    result = CliRunner().invoke(app, ["--version"])
    assert (result.exit_code, result.stdout) == (0, f"amazon-reviews {version('amazon-reviews')}\n")


@pytest.mark.parametrize("command", [(), *ALL], ids=" ".join)
def test_help_flows_at_any_width_and_has_an_example(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    shown = CliRunner().invoke(app, [*command, "-h"]).stdout
    assert "Example: amazon-reviews" in shown
    # No types of Python, such as `<bool>`, and no names of Python in place of TEXT and VERSION.
    assert "<" not in shown.replace("<=x<=", "")
    usage = next(line for line in shown.splitlines() if "Usage: " in line)
    assert not re.search(r"[\[{][a-z]+[\]}]", usage)
    takes_settings = "[default: $PIPELINE_CONFIG or" in " ".join(shown.split())
    assert takes_settings == (command in WITH_SETTINGS)
    prose = shown.split("╭")[0].splitlines()[4:]
    # A paragraph is one line, unless it is longer than the width.
    broken = [one for one, other in pairwise(prose) if one.strip() and other.strip()]
    assert all(len(line.rstrip()) >= 250 for line in broken)


@pytest.mark.parametrize("words", [["-m", "amazon_reviews_start"], ["amazon_reviews_start.py"]])
def test_the_module_is_the_command_too(words):
    done = subprocess.run(
        [sys.executable, *words, "--version"], cwd=CHECKOUT, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("amazon-reviews ")


def test_a_working_directory_that_was_removed_is_one_line(tmp_path):
    folder = tmp_path / "removed"
    folder.mkdir()
    code = f"import os, sys; os.rmdir({str(folder)!r}); sys.path.insert(0, {str(CHECKOUT)!r}); "
    code += "sys.argv = ['amazon-reviews', 'runs']; from cli.command import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    assert done.stderr.startswith(
        "the working directory cannot be used (No such file or directory)"
    )
    assert len(done.stderr.splitlines()) == 1


def test_a_full_disk_is_one_line():
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-c", "from cli.command import main; main()", "--help"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == 1
    assert done.stderr == (
        "the disk is full: [Errno 28] No space left on device; free space on it and repeat the "
        "command\n"
    )
