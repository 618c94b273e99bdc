"""Lists of files, and outputs that are replaced."""

import os

import pytest
import tensorflow as tf

from core.errors import ConfigError
from core.files import check_replaced, list_files, output_path, write_output
from tests.full_disk import full_disk


def test_only_the_names_of_files_are_patterns(tmp_path):
    for folder in ("x[1]*?", "x1a"):
        (tmp_path / folder).mkdir()
        for name in ("b", "a1", "a2"):
            (tmp_path / folder / name).touch()
    folder = str(tmp_path / "x[1]*?")
    assert list_files(folder) == [f"{folder}/{name}" for name in ("a1", "a2", "b")]
    assert list_files(folder, "a*") == [f"{folder}/a1", f"{folder}/a2"]
    assert list_files(f"{folder}/missing") == []


def test_a_folder_that_cannot_be_listed_is_not_an_empty_one(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(tf.errors.OpError):
        list_files(str(tmp_path / "file"))
    with pytest.raises(tf.errors.OpError):
        list_files(str(tmp_path / "file" / "below"))


def test_an_output_is_written_through_links_and_only_to_a_regular_file(tmp_path):
    (tmp_path / "link").symlink_to("file")
    for text in ("first", "second"):
        write_output(tmp_path / "link", text)
        assert (tmp_path / "file").read_text() == text
    assert (tmp_path / "link").is_symlink()
    assert output_path(tmp_path / "link") == str(tmp_path / "file")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "to_pipe").symlink_to("pipe")
    for name in ("pipe", "to_pipe", ""):
        with pytest.raises(ConfigError, match=f"^--output: {tmp_path}.* is not a regular file;"):
            write_output(tmp_path / name, "text")
    assert (tmp_path / "pipe").is_fifo() and len(list(tmp_path.iterdir())) == 4


def test_an_output_that_cannot_be_written_is_one_line_and_changes_no_file(tmp_path):
    (tmp_path / "file").write_text("earlier")
    too_large = pytest.raises(ConfigError, match=r"^--output: .*/file cannot be written: File too")
    with full_disk(1 << 10), too_large:
        write_output(tmp_path / "file", "x" * (1 << 12))
    for name in ("file/x", "missing/x"):
        with pytest.raises(ConfigError, match=f"^--output: .*/{name} cannot be written: N"):
            write_output(tmp_path / name, "text")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["earlier"]


def test_an_output_replaces_only_outputs_of_its_kind(tmp_path):
    kind = ("<!doctype html>", "a page in HTML")
    (tmp_path / "mine.yaml").write_text("data: {}")
    message = "^--html: .*/mine.yaml is there and is not a page in HTML, so it is not replaced; set"
    with pytest.raises(ConfigError, match=message):
        check_replaced(tmp_path / "mine.yaml", *kind, option="--html")
    (tmp_path / "page.html").write_text("<!doctype html>\n<p>")
    (tmp_path / "empty").touch()
    for name in ("page.html", "empty", "missing", "mine.yaml/missing"):
        check_replaced(tmp_path / name, *kind)
