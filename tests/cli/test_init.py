"""`amazon-reviews init`: a project that is written once, and is a whole run."""

import subprocess

import pytest

from cli.init import create_project
from core.errors import ConfigError
from pipeline.config import load_config
from tests.e2e.harness import COMMAND
from tests.full_disk import full_disk


def test_a_folder_with_files_is_left_as_it_is(tmp_path):
    (tmp_path / "mine.yaml").write_text("name: other")
    with pytest.raises(ConfigError, match="is not empty, and nothing in it is overwritten"):
        create_project(tmp_path)
    assert (tmp_path / "mine.yaml").read_text() == "name: other"
    assert len(list(tmp_path.iterdir())) == 1
    with pytest.raises(ConfigError, match=r"mine\.yaml cannot be written: .*exist"):
        create_project(tmp_path / "mine.yaml")


@pytest.mark.parametrize(
    ("folder", "name"), [("Support Desk", "support_desk"), ("2027", "my_project")]
)
def test_the_pipeline_has_the_name_of_the_folder(tmp_path, folder, name):
    (tmp_path / folder).mkdir()
    files = create_project(tmp_path / folder)
    assert sorted(str(file.relative_to(tmp_path / folder)) for file in files) == [
        *("components/my_component.py", "golden.txt", "mine.yaml", "models/my_model.py")
    ]
    config = load_config(str(tmp_path / folder / "mine.yaml"), environ={})
    assert (config.name, config.training.model) == (name, "my_model")


PATTERN = " contains [, * or ?, which libraries match as a pattern; choose another name"
CONTROL = " contains a control character; choose another name"


@pytest.mark.parametrize(
    ("folder", "message"),
    [
        *((folder, folder + PATTERN) for folder in ("[x]", "a*/b", "why?")),
        *((folder, repr(folder)[1:] + CONTROL) for folder in ("a\x1bb", "a\x85b", "a\tb", "a\nb")),
        ("a\udce4b", r"a\udce4b' is not UTF-8; choose another name"),
    ],
)
def test_a_folder_whose_path_no_run_can_use_is_refused(tmp_path, folder, message):
    with pytest.raises(ConfigError) as error:
        create_project(tmp_path / folder)
    assert str(error.value).endswith(f"{tmp_path}/{message}")
    assert not list(tmp_path.iterdir())


def test_a_project_that_does_not_fit_on_the_disk_leaves_nothing(tmp_path):
    too_large = pytest.raises(ConfigError, match="mine cannot be written: File too large")
    with full_disk(1000), too_large:
        create_project(tmp_path / "mine")
    assert not list((tmp_path / "mine").iterdir())
    assert len(create_project(tmp_path / "mine")) == 4


@pytest.mark.parametrize("folder", ["a\xa0b", "\U0001f469\u200d\U0001f4bb", "a\u200fb"])
def test_a_folder_with_invisible_characters_that_control_nothing_is_a_project(tmp_path, folder):
    create_project(tmp_path / folder)
    config = load_config(str(tmp_path / folder / "mine.yaml"), environ={})
    assert config.paths.root == f"{tmp_path / folder}/runs"


@pytest.mark.slow
@pytest.mark.parametrize("changed", [False, pytest.param(True, marks=pytest.mark.exhaustive)])
def test_a_new_project_runs_and_a_changed_file_runs_again(tmp_path, changed):
    """The working directory is not the project.

    tests/pipeline/test_nodes.py tries without a run which components a change concerns.
    """

    def command(*words):
        return subprocess.run(
            [COMMAND, *words], cwd=tmp_path, capture_output=True, text=True, timeout=600
        )

    def run():
        few = "data.max_examples=600,training.epochs=1"
        few += ",evaluation.min_accuracy=0,evaluation.min_class_recall=0"
        done = command(
            *("run", "--config", "mine/mine.yaml", "--set", few),
            *("--set", "evaluation.max_accuracy_drop=1,serving_check.min_golden=0"),
        )
        rows = [line.split() for line in done.stdout.splitlines() if line.endswith(" s")]
        return done, {row[0]: row[1] for row in rows}

    printed = command("init", "mine").stdout
    assert printed.splitlines()[-1] == "next: amazon-reviews run --config mine/mine.yaml"
    done, states = run()
    assert done.returncode == 0, done.stdout + done.stderr
    assert states["my_component"] == states["Trainer"] == states["Pusher"] == "done"
    [shares] = (tmp_path / "mine" / "runs" / "my_component" / "shares").glob("*/shares.json")
    assert '{"train": {"negative": 0.47' in shares.read_text()

    if not changed:
        return
    model = tmp_path / "mine" / "models" / "my_model.py"
    model.write_text(model.read_text() + "\n# The model is the same, and its code is not.\n")
    done, states = run()
    assert done.returncode == 0, done.stdout + done.stderr
    assert states["Trainer"] == "done"
    assert states["Transform"] == states["my_component"] == "cached"
