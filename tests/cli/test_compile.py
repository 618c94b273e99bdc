"""`amazon-reviews compile` writes its output, and replaces no file that a user has written."""

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli import compile as command
from cli.init import create_project
from core.errors import ConfigError
from tests.platforms.compiled import REQUIRED


@pytest.fixture
def compile_project(monkeypatch, tmp_path):
    """A compilation in the folder of a new project, with the name of its output as result."""
    create_project(tmp_path / "mine")
    monkeypatch.chdir(tmp_path / "mine")
    outputs = []
    monkeypatch.setattr(command, "compile_to", lambda file, *_: outputs.append(str(file)))

    def compile(*options, config="mine.yaml"):
        words = ("compile", "--target", "kubeflow", "--config", config, *options)
        done = CliRunner().invoke(command.app, [*words, "--set", REQUIRED["kubeflow"]])
        if done.exception:
            raise done.exception
        return outputs[-1]

    return compile


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "--output: mine.yaml is there and is not a pipeline for kubeflow, .* mine-kubeflow.y"),
        (("--output", "models/../mine.yaml"), "models/../mine.yaml is there and is not a pipeline"),
        (("--output", "link.yaml"), "link.yaml is there .* --output link-kubeflow.yaml"),
        (("--output", "golden.txt"), "golden.txt is there and is not a pipeline for kubeflow"),
        (("--output", "models/my_model.py"), "my_model.py is there and is not a pipeline"),
        (("--output", "other.yaml"), "other.yaml is there and is not a pipeline"),
    ],
)
def test_a_file_of_the_user_is_no_output(compile_project, options, message):
    os.symlink("mine.yaml", "link.yaml")
    Path("other.yaml").write_text("data: {input_base: raw}\n")
    with pytest.raises(ConfigError, match=message) as error:
        compile_project(*options)
    assert "\n" not in str(error.value)


def test_the_default_name_and_the_proposed_one_are_possible(compile_project):
    assert compile_project("--output", "mine-kubeflow.yaml") == "mine-kubeflow.yaml"
    os.rename("mine.yaml", "settings.yaml")
    assert compile_project(config="settings.yaml") == "mine.yaml"
    # A second compilation replaces the output of the first one.
    Path("mine.yaml").write_text("components:\n  DataGate: {}\n")
    assert compile_project(config="settings.yaml") == "mine.yaml"
