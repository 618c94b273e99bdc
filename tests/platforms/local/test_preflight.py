"""The errors that a local run reports before it starts."""

import shutil
from dataclasses import replace
from unittest.mock import Mock

import google.auth
import pytest
import yaml
from google.auth.exceptions import DefaultCredentialsError

from core.errors import ConfigError, InputError
from core.metadata import last_execution
from pipeline.config import PipelineConfig
from platforms.local.preflight import check_run
from preprocessing.labels import SENTIMENT
from tests.platforms.local.store import Metadata
from tests.serving.models import push_classes

REVIEWS = "__label__1 Bad: broke\n__label__2 Good: works\n"


def config(tmp_path, **sections):
    paths = {"root": str(tmp_path / "runs"), **sections.pop("paths", {})}
    return PipelineConfig.model_validate({"paths": paths, **sections})


def test_the_sample_is_not_pushed_beside_the_models_of_other_data(tmp_path):
    inputs = tmp_path / "input"
    inputs.mkdir()
    (inputs / "a.txt").write_text(REVIEWS)
    own = config(tmp_path, data={"input_base": str(inputs)})
    (tmp_path / "runs").mkdir()
    metadata = Metadata(tmp_path / "runs")
    metadata.add_run("first", config(tmp_path).model_dump())
    check_run(own)
    metadata.add_run("second", own.model_dump())
    for other in (config(tmp_path), config(tmp_path, name="second", data=own.data.model_dump())):
        with pytest.raises(ConfigError, match=r"/serving contains models of amazon_reviews on /"):
            check_run(other)
    check_run(config(tmp_path, paths={"serving": str(tmp_path / "other")}))
    check_run(own)
    # The folder may have been moved since, or have several paths.
    (tmp_path / "link").symlink_to("runs")
    shutil.copytree(tmp_path / "runs", tmp_path / "moved")
    for name in ("link", "moved"):
        paths = {"root": str(tmp_path / name)}
        with pytest.raises(ConfigError, match=f"/{name}/serving contains models of amazon_reviews"):
            check_run(config(tmp_path, paths=paths))
        check_run(config(tmp_path, paths=paths, data=own.data.model_dump()))
    # A root of its own may share ML Metadata.
    metadata_of = {"metadata": str(tmp_path / "runs" / "metadata.sqlite")}
    check_run(config(tmp_path, paths={"root": str(tmp_path / "third"), **metadata_of}))


def test_outputs_that_ml_metadata_does_not_know_are_not_overwritten(tmp_path):
    own = config(tmp_path)
    root = tmp_path / "runs"
    root.mkdir()
    metadata = Metadata(root)
    metadata.add_run("first", nodes=["ReviewExampleGen", "Trainer"])
    assert last_execution(metadata.store) == 2
    for folder in ("ReviewExampleGen/examples/1", "Trainer/model/2", "Trainer/.system/x/9"):
        (root / folder).mkdir(parents=True)
    (root / "Trainer" / "notes.txt").touch()
    check_run(own)
    moved = tmp_path / "moved.sqlite"
    (root / "metadata.sqlite").rename(moved)
    with pytest.raises(ConfigError) as error:
        check_run(own)
    assert str(error.value).startswith(
        f"paths.root: {root}/ReviewExampleGen/examples/1 is the output of a run that is not in "
        f"paths.metadata ({root}/metadata.sqlite), and this run might overwrite it; set paths.meta"
    )
    assert not (root / "metadata.sqlite").exists()
    check_run(config(tmp_path, paths={"metadata": str(moved)}))
    # An earlier copy of the database lacks the last executions.
    (root / "Trainer/model/3").mkdir()
    with pytest.raises(ConfigError, match=r"Trainer/model/3 is the output of a run that is not in"):
        check_run(config(tmp_path, paths={"metadata": str(moved)}))
    check_run(config(tmp_path, paths={"root": str(tmp_path / "other")}))


def test_a_bucket_without_credentials_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr(google.auth, "default", Mock(side_effect=DefaultCredentialsError("none")))
    with pytest.raises(ConfigError, match=r"paths.serving: gs://bucket/x requires Google Cloud c"):
        check_run(config(tmp_path, paths={"serving": "gs://bucket/x"}))


@pytest.mark.parametrize("key", ["serving", "checkpoints"])
def test_an_object_store_that_tensorflow_does_not_read_is_an_error(tmp_path, key):
    """Without this check a run would fail in its Trainer, after all other steps."""
    with pytest.raises(ConfigError, match=rf"^paths.{key}: s3://b/x cannot be read: .*scheme 's3'"):
        check_run(config(tmp_path, paths={key: "s3://b/x"}))


def test_a_hyperparameter_that_the_model_does_not_know_is_an_error(tmp_path):
    training = {"model": "cnn_lstm", "hyperparameters": {"layers": 3}}
    with pytest.raises(ConfigError, match=r"hyperparameters.layers: unknown key, known are emb"):
        check_run(config(tmp_path, training=training))


def test_a_tuner_without_a_value_to_try_is_an_error(tmp_path):
    values = {"length_power": 0.5, "scale_floor": 0.5, "scale_smoothing": 0.5}
    training = {"tuner_trials": 2, "hyperparameters": values}
    check_run(config(tmp_path, training=training))
    with pytest.raises(ConfigError, match=r"^training.tuner_trials: 2, but .* remove one of learn"):
        check_run(config(tmp_path, training={**training, "learning_rate": 0.1}))


def test_a_folder_without_reviews_is_named(tmp_path):
    folder = tmp_path / "input"
    folder.mkdir()
    (folder / "README.md").write_text("")
    with pytest.raises(InputError, match=r"input and its subfolders contain no file of texts"):
        check_run(config(tmp_path, data={"input_base": str(folder)}))


def test_the_files_are_checked_with_the_settings_of_the_run(tmp_path):
    inputs = tmp_path / "input"
    inputs.mkdir()
    (inputs / "a.txt").write_text("given,said\n0,__label__2\n3,good\n")
    data = {
        "input_base": str(inputs),
        "format": "csv",
        "columns": {"label": "given", "text": "said"},
        "labels": {"0": 0, "3": 1},
    }
    check_run(config(tmp_path, data=data))
    for name, expected in [
        ("columns", "set data.columns.label and data.columns.text"),
        ("labels", "the labels 0, 3"),
    ]:
        with pytest.raises(InputError, match=expected):
            check_run(config(tmp_path, data={key: data[key] for key in data if key != name}))


@pytest.mark.parametrize(
    ("labels", "served", "message"),
    [
        (
            "12",
            "1 to 5",
            "data.input_base: the labels are read as the scale 1 and 2, and the served model was "
            "trained with the scale 1 to 5, which they fit too: set data.labels="
            "{1: 0, 2: 0, 3: null, 4: 1, 5: 1} for 1 to 5, data.labels={1: 0, 2: 1} for 1 and 2, "
            "or paths.serving to another folder",
        ),
        (
            "01",
            "-1 to 1",
            "the scale 0 and 1, and the served model was trained with the scale -1 to 1",
        ),
        (
            "34",
            "0 to 4",
            "the scale 1 to 5, and the served model was trained with the scale 0 to 4",
        ),
        ("12345", "1 to 5", ""),
        ("12345", "1 and 2", ""),
        ("01", "1 to 5", ""),
        ("12", "", ""),
    ],
)
def test_labels_that_fit_the_scale_of_the_served_model_too_are_an_error(
    tmp_path, labels, served, message
):
    inputs, version = tmp_path / "input", tmp_path / "runs" / "serving" / "1"
    inputs.mkdir()
    rows = [f"{label},text {n}\n" for n, label in enumerate(labels * 3)]
    (inputs / "a.csv").write_text("".join(["label,text\n", *rows]))
    push_classes(version, replace(SENTIMENT, label_scale=served))
    data = {"input_base": str(inputs)}
    paths = {"serving": str(version.parent)}
    if not message:
        check_run(config(tmp_path, data=data, paths=paths))
        return
    with pytest.raises(InputError) as error:
        check_run(config(tmp_path, data=data, paths=paths))
    assert message in str(error.value)
    # Each remedy in the message is one.
    for remedy in str(error.value).split("data.labels=")[1:]:
        setting = yaml.safe_load(remedy[: remedy.index("}") + 1])
        check_run(config(tmp_path, data={**data, "labels": setting}, paths=paths))
    check_run(config(tmp_path, data=data, paths={"serving": str(tmp_path / "other")}))
