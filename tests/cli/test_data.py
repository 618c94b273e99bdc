"""`amazon-reviews data fetch`: only complete files, and one line for each error."""

import subprocess
import sys
from pathlib import Path

import google.auth
import kagglehub
import pytest
import requests
from apache_beam.io.localfilesystem import LocalFileSystem
from google.auth.exceptions import DefaultCredentialsError
from kagglehub import exceptions

from cli import data
from cli.command import main


class Store(LocalFileSystem):
    """A file system that Beam finds by its scheme; store:///FOLDER is /FOLDER of this machine."""

    @classmethod
    def scheme(cls):
        return "store"

    def __init__(self, pipeline_options):
        super().__init__(pipeline_options)

    @staticmethod
    def here(path):
        return path.removeprefix("store://")

    def exists(self, path):
        return super().exists(self.here(path))

    def create(self, path, *arguments, **options):
        # Like an object store, this file system requires no folders.
        Path(self.here(path)).parent.mkdir(parents=True, exist_ok=True)
        return super().create(self.here(path), *arguments, **options)

    def rename(self, sources, targets):
        super().rename([self.here(p) for p in sources], [self.here(p) for p in targets])

    def delete(self, paths):
        super().delete([self.here(path) for path in paths])


@pytest.fixture
def downloads(tmp_path, monkeypatch):
    """A replacement of Kaggle's download, whose files contain their names; a list of requests."""
    asked = []

    def download(dataset, path):
        asked.append((dataset, path))
        file = tmp_path / "cache" / path
        file.parent.mkdir(exist_ok=True)
        file.write_text(path)
        return str(file)

    monkeypatch.setattr(kagglehub, "dataset_download", download)
    return asked


def test_both_files_are_downloaded_into_the_folder(tmp_path, downloads):
    lines = []
    files = data.fetch_files(str(tmp_path / "data"), lines.append)
    assert [Path(file).read_text() for file in files] == list(data.FILES)
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == sorted(data.FILES)
    assert [path for _, path in downloads] == list(data.FILES)
    assert len(lines) == 2


def test_existing_files_are_not_downloaded_again(tmp_path, downloads):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / data.FILES[0]).write_text("mine")
    data.fetch_files(str(tmp_path / "data"), lambda line: None)
    assert (tmp_path / "data" / data.FILES[0]).read_text() == "mine"
    assert [path for _, path in downloads] == [data.FILES[1]]


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (requests.exceptions.ConnectionError("refused"), "Kaggle is unreachable"),
        (exceptions.UnauthenticatedError(), "KAGGLE_USERNAME and KAGGLE_KEY"),
        (exceptions.DataCorruptionError("hash"), "could not be downloaded: hash"),
        (OSError(28, "No space left on device"), "No space left on device"),
    ],
)
def test_an_error_is_one_line_and_leaves_no_file(tmp_path, monkeypatch, error, message):
    def download(dataset, path):
        raise error

    monkeypatch.setattr(kagglehub, "dataset_download", download)
    with pytest.raises(data.FetchError) as raised:
        data.fetch_files(str(tmp_path / "data"), lambda line: None)
    assert message in str(raised.value)
    assert data.FILES[0] in str(raised.value)
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "data").exists()


def command(monkeypatch, capsys, base, *words):
    """Run `amazon-reviews`; return exit code, standard output and standard error."""
    monkeypatch.setattr("sys.argv", ["amazon-reviews", *words])
    monkeypatch.setenv("PIPELINE_CONFIG", "amazon")
    monkeypatch.setenv("PIPELINE_SET", f"data.input_base={base}")
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code, *capsys.readouterr()


def test_a_url_is_written_through_its_file_system(tmp_path, monkeypatch, capsys, downloads):
    monkeypatch.chdir(tmp_path)
    base = f"store://{tmp_path}/bucket"
    code, out, _ = command(monkeypatch, capsys, base, "data", "fetch")
    assert code == 0
    assert f"2 files in {base}" in out
    written = {path.name: path.read_text() for path in (tmp_path / "bucket").iterdir()}
    assert written == {name: name for name in data.FILES}
    assert not list(tmp_path.glob("store:*"))
    assert "exists already" in command(monkeypatch, capsys, base, "data", "fetch")[1]
    assert len(downloads) == 2


def no_credentials(scopes=None):
    raise DefaultCredentialsError("none")


@pytest.mark.parametrize(
    ("base", "message"),
    [
        ("gs://bucket/reviews", "gs://bucket/reviews requires Google Cloud credentials"),
        ("nowhere://bucket", "nowhere://bucket cannot be read"),
        ("{file}/reviews", "is a file"),
    ],
)
def test_an_unwritable_destination_is_exit_code_2_before_any_download(
    tmp_path, monkeypatch, capsys, downloads, base, message
):
    monkeypatch.setattr(google.auth, "default", no_credentials)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    base = base.format(file=tmp_path / "file")
    code, _, error = command(monkeypatch, capsys, base, "data", "fetch")
    assert code == 2
    [line] = error.splitlines()
    assert line.startswith("data.input_base: ") and message in line
    assert downloads == []
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_an_output_file_is_not_a_url(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    output = "--output=gs://bucket/file.yaml"
    words = ["compile", "--target", "kubeflow", output]
    code, _, error = command(monkeypatch, capsys, "gs://bucket", *words)
    assert code == 2
    assert error == (
        "--output: gs://bucket/file.yaml is not a local path. Write a local file and copy it\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_an_error_is_one_line_whatever_the_libraries_warn_about(tmp_path):
    (tmp_path / "file").touch()
    words = ["data", "fetch", "--set", f"data.input_base={tmp_path}/file/reviews"]
    program = "from cli.command import main; main()"
    done = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True)
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert line.startswith("data.input_base: ")
