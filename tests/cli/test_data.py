"""`amazon-reviews data fetch`: only complete files, and one line for each error."""

from pathlib import Path

import google.auth
import kagglehub
import pytest
import tensorflow as tf
from google.auth.exceptions import DefaultCredentialsError
from kagglehub import exceptions
from typer.testing import CliRunner

from cli import data
from cli.app import app
from core.errors import ServerError


@pytest.fixture
def downloads(tmp_path, monkeypatch):
    """A replacement of Kaggle's download, whose files contain their names; a list of requests."""
    asked = []

    def download(dataset, path):
        asked.append(path)
        file = tmp_path / "cache" / path
        file.parent.mkdir(exist_ok=True)
        file.write_text(path)
        return str(file)

    monkeypatch.setattr(kagglehub, "dataset_download", download)
    return asked


def test_missing_files_are_downloaded_into_the_folder(tmp_path, downloads):
    folder, lines = tmp_path / "data", []
    files = data.fetch_files(str(folder), lines.append)
    assert [Path(file).read_text() for file in files] == list(data.FILES)
    assert sorted(path.name for path in folder.iterdir()) == sorted(data.FILES)
    assert (downloads, len(lines)) == ([*data.FILES], 2)
    (folder / data.FILES[0]).write_text("mine")
    (folder / data.FILES[1]).unlink()
    data.fetch_files(str(folder), lines.append)
    assert (folder / data.FILES[0]).read_text() == "mine"
    assert downloads == [*data.FILES, data.FILES[1]]


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (exceptions.UnauthenticatedError(), "KAGGLE_USERNAME and KAGGLE_KEY"),
        (OSError(28, "No space left on device"), "No space left on device"),
    ],
)
def test_an_error_is_one_line_and_leaves_no_file(tmp_path, monkeypatch, error, message):
    def download(dataset, path):
        raise error

    monkeypatch.setattr(kagglehub, "dataset_download", download)
    with pytest.raises(ServerError) as raised:
        data.fetch_files(str(tmp_path / "data"), lambda line: None)
    assert message in str(raised.value)
    assert data.FILES[0] in str(raised.value)
    assert "\n" not in str(raised.value)
    assert list((tmp_path / "data").iterdir()) == []


def test_a_kill_while_a_file_is_copied_leaves_no_half_of_it(tmp_path, monkeypatch, downloads):
    folder, lines = tmp_path / "data", []

    def killed(source, target, overwrite):
        Path(target).write_text("half")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(tf.io.gfile, "copy", killed)
        data.fetch_files(str(folder), lines.append)
    files = data.fetch_files(str(folder), lines.append)
    assert [Path(file).read_text() for file in files] == list(data.FILES)
    assert sorted(path.name for path in folder.iterdir()) == sorted(data.FILES)


def fetch(base):
    environ = {"PIPELINE_CONFIG": "amazon", "PIPELINE_SET": f"data.input_base={base}"}
    return CliRunner().invoke(app, ["data", "fetch"], env=environ)


def test_a_url_is_written_through_its_file_system(downloads):
    base = "ram://bucket/reviews"  # TensorFlow's file system in memory
    result = fetch(base)
    assert (result.exit_code, f"2 files in {base}" in result.stdout) == (0, True)
    for name in data.FILES:
        assert tf.io.gfile.GFile(f"{base}/{name}").read() == name
    assert "exists already" in fetch(base).stdout
    assert len(downloads) == 2


def no_credentials(scopes=None):
    raise DefaultCredentialsError("none")


@pytest.mark.parametrize(
    ("base", "message"),
    [
        ("gs://bucket/reviews", "gs://bucket/reviews requires Google Cloud credentials"),
        ("{file}/reviews", "reviews cannot be written"),
    ],
)
def test_an_unwritable_destination_is_exit_code_2_before_any_download(
    tmp_path, monkeypatch, downloads, base, message
):
    monkeypatch.setattr(google.auth, "default", no_credentials)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    base = base.format(file=tmp_path / "file")
    result = fetch(base)
    assert result.exit_code == 2
    [line] = result.stderr.splitlines()
    assert line.startswith("data.input_base: ") and message in line
    assert downloads == []
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
