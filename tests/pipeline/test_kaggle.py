"""`amazon-reviews data fetch`: whole files only, and a clear line for whatever goes wrong."""

import kagglehub
import pytest
import requests
from kagglehub import exceptions

from pipeline import kaggle


@pytest.fixture
def downloads(tmp_path, monkeypatch):
    """Kaggle without the network: each file's content is its name. Returns what was asked for."""
    asked = []

    def download(dataset, path):
        asked.append((dataset, path))
        file = tmp_path / "cache" / path
        file.parent.mkdir(exist_ok=True)
        file.write_text(path)
        return str(file)

    monkeypatch.setattr(kagglehub, "dataset_download", download)
    return asked


def test_both_files_come_into_the_folder(tmp_path, downloads):
    said = []
    files = kaggle.fetch(tmp_path / "data", said.append)
    assert [file.read_text() for file in files] == list(kaggle.FILES)
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == sorted(kaggle.FILES)
    assert [path for _, path in downloads] == list(kaggle.FILES)
    assert len(said) == 2


def test_what_is_there_is_not_fetched_again(tmp_path, downloads):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / kaggle.FILES[0]).write_text("mine")
    kaggle.fetch(tmp_path / "data", lambda line: None)
    assert (tmp_path / "data" / kaggle.FILES[0]).read_text() == "mine"
    assert [path for _, path in downloads] == [kaggle.FILES[1]]


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (requests.exceptions.ConnectionError("refused"), "Kaggle was not reached"),
        (exceptions.UnauthenticatedError(), "KAGGLE_USERNAME and KAGGLE_KEY"),
        (exceptions.DataCorruptionError("hash"), "could not be fetched: hash"),
        (OSError(28, "No space left on device"), "No space left on device"),
    ],
)
def test_what_goes_wrong_is_one_line_and_leaves_nothing(tmp_path, monkeypatch, error, told):
    def download(dataset, path):
        raise error

    monkeypatch.setattr(kagglehub, "dataset_download", download)
    with pytest.raises(kaggle.FetchError) as raised:
        kaggle.fetch(tmp_path / "data", lambda line: None)
    assert told in str(raised.value)
    assert kaggle.FILES[0] in str(raised.value)
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "data").exists()
