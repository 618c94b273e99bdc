"""A project: its files are found, its paths are its own, and a changed file is not skipped."""

import pytest

from cli.init import create_project
from core.errors import ConfigError
from pipeline.config import load_config
from pipeline.selected_nodes import node_ids
from platforms.local.unchanged import fingerprint
from tools.reference import docstrings
from trainer_module.settings import MODELS, Training


@pytest.fixture
def project(tmp_path):
    create_project(tmp_path / "mine")
    return tmp_path / "mine"


def load(project, *overrides):
    return load_config(str(project / "mine.yaml"), overrides, environ={})


def test_the_paths_of_a_settings_file_are_relative_to_its_project(project, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = load_config("mine/mine.yaml", ["data.input_base=exports"], environ={})
    assert config.project == str(project)
    assert config.paths.root == str(project / "runs")
    assert config.paths.serving == str(project / "runs" / "serving")
    assert config.serving_check.golden == str(project / "golden.txt")
    # A path on the command line is relative to the working directory, as for every command.
    assert config.data.input_base == str(tmp_path / "exports")
    other = tmp_path / "settings.yaml"
    other.write_text(
        "project: mine\ndata: {input_base: exports}\npaths: {root: gs://bucket/runs}\n"
        "server: {sample_folder: requests}\nbeam: {flink: {jars: jars}}"
    )
    config = load_config("settings.yaml", environ={})
    assert config.data.input_base == str(project / "exports")
    assert config.paths.root == "gs://bucket/runs"
    assert config.server.sample_folder == str(project / "requests")
    assert config.beam.flink.jars == str(project / "jars")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            "paths: {root: 'gs:/bucket/runs'}",
            "paths: gs:/bucket/runs is not a valid URL; write gs://b",
        ),
        ("data: {input_base: 's3:/bucket'}", "s3:/bucket is not a valid URL; write s3://bucket"),
        ("server: {sample_folder: 'gs:/b'}", "must be a path of this machine, and no URL"),
        ("data: {input_base: $DATA/texts}", "input_base: $DATA/texts contains $DATA, and variab"),
    ],
)
def test_a_wrong_path_is_no_folder_of_the_project(project, tmp_path, settings, message):
    file = tmp_path / "settings.yaml"
    file.write_text(f"project: {project.name}\n{settings}")
    with pytest.raises(ConfigError) as error:
        load_config(str(file), environ={})
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            "training.model=my_modle",
            "training.model: unknown model 'my_modle', did you mean my_model?",
        ),
        ("training.model=bert", "{project}/models: my_model"),
        ("training.model=bert", "Known are ngram_linear, deep_averaging, cnn_lstm, text_cnn, "),
        ("cluster.resources={my_modle: {cpu: 1}}", "unknown component my_modle; known are Review"),
        ("project=absent", "/absent; set the folder of the project, or create one with `amazon-"),
    ],
)
def test_an_unknown_model_or_project_is_one_line_with_what_exists(project, change, message):
    with pytest.raises(ConfigError) as error:
        load(project, change)
    assert message.format(project=project) in str(error.value)
    assert str(error.value).startswith(f"{project}/mine.yaml with --set: ")


def test_the_reference_names_every_model_of_the_package():
    assert all(f"`{name}`" in docstrings(Training)["model"] for name in MODELS)


def test_without_a_project_the_message_names_the_models_and_the_way_to_one():
    with pytest.raises(ConfigError) as error:
        load_config("sample", ["training.model=bert"], environ={})
    assert "wide_and_deep, and those of a project, which `amazon-reviews init FOLDER`" in str(
        error.value
    )


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("models/my-model.py", "'my-model' is not a name in Python; rename the file"),
        ("models/class.py", "'class' is not a name in Python"),
        ("models/text_cnn.py", "the package has a text_cnn already; rename the file"),
        ("components/Trainer.py", "the package has a Trainer already"),
    ],
)
def test_a_file_whose_name_cannot_be_used_is_named(project, file, message):
    (project / file).write_text("")
    with pytest.raises(ConfigError) as error:
        load(project)
    assert f"{project / file}: {message}" in str(error.value)


def test_a_copy_of_a_model_of_the_package_is_not_ignored(project):
    (project / "models" / "text_cnn.py").write_text("")
    with pytest.raises(ConfigError, match="the package has a text_cnn already; rename the file"):
        load(project, "training.model=text_cnn")


def test_the_components_are_nodes_before_the_push(project):
    (project / "components" / "a_check.py").write_text("")
    (project / "components" / "_notes.py").write_text("not Python")
    ids = node_ids(load(project))
    assert ids[-5:] == ["ServingCheck", "a_check", "my_component", "Pusher", "RunReport"]
    assert node_ids(load(project, "push.destination=none"))[-2:] == ["my_component", "RunReport"]


@pytest.mark.parametrize("file", ["models/my_model.py", "components/my_component.py", "golden.txt"])
def test_a_run_after_a_change_of_a_file_is_not_skipped(project, file):
    config = load(project)
    before = fingerprint(config, "files")
    assert before == fingerprint(load(project), "files")
    with (project / file).open("a") as stream:
        stream.write("\n# changed\n")
    assert fingerprint(config, "files") not in (None, before)


def test_a_model_that_is_not_used_does_not_matter(project):
    before = fingerprint(load(project), "files")
    (project / "models" / "other.py").write_text("broken(")
    assert fingerprint(load(project), "files") == before
